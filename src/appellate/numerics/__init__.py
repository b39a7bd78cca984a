"""Pure functions of arrays: projection, kernels, ridge smoothing, the accelerated loop.

Nothing here knows of estimators, class names or files.
"""
