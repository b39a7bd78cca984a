"""PRODEN: the network's own probabilities, kept to the candidates, become its targets."""

from __future__ import annotations

from appellate.deep.estimator import DeepClassifier


class PRODENClassifier(DeepClassifier):
    """Progressive identification of the true label by a network [1]_, alone or coupled.

    Every training row carries a confidence W over its candidates, at first even. A step on a
    batch minimises ``-sum_j W_ij log g_ij`` and then sets ``W_i <- rownorm(y_i * g_i)`` with
    the probabilities g of that same pass.

    With ``partner="non-candidate"`` a second network of the same kind learns what a sample is
    *not*, and both are drawn together through blurred confidences [2]_:

        L = L_base + L_com + collaboration * L_col
        L_com = -sum over non-candidates of log p^      (p^: the partner's confidence that a
                                                         label is not the true one)
        L_col = 1 - <blur(g), blur(1 - p^)>             (over the candidates)

    Cost: that of plain training of the same network, twice with a partner. Memory: the
    network, one batch, and n x l confidences.

    Parameters
    ----------
    network : str, callable or Network, default="mlp"
        ``"linear"``, ``"mlp"``, ``"convnet"``, ``"resnet18"``, ``"resnet32"``, or a function
        ``(input_shape, n_outputs) -> torch.nn.Module`` whose module returns logits. `Network`
        has the options of those by name: ``Network("mlp", hidden=(300, 300, 300))``.
    @parameters@

    Attributes
    ----------
    @attributes@

    References
    ----------
    .. [1] Lv, Xu, Feng, Niu, Geng, Sugiyama (2020). Progressive identification of true labels
       for partial-label learning. ICML.
    .. [2] Si, Wang, Wang, Yang, Shen. Appeal: Allow mislabeled samples the chance to be
       rectified in partial label learning.

    Examples
    --------
    >>> from appellate.deep import PRODENClassifier
    >>> X = [[0.0], [0.1], [0.2], [5.0], [5.1], [5.2]]
    >>> y = ["cat|dog", "cat", "cat|cow", "dog", "dog|cow", "cat|dog"]
    >>> model = PRODENClassifier(n_epochs=60, partner="non-candidate", random_state=0).fit(X, y)
    >>> model.predict([[0.05], [4.9]])
    array(['cat', 'dog'], dtype='<U3')
    """
