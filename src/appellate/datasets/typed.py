"""The loaders of data sets, for type checkers. ``python tests/test_api.py`` writes this file."""

from appellate.datasets.crowd import load_cifar10h as load_cifar10h
from appellate.datasets.crowd import load_cifar10n as load_cifar10n
from appellate.datasets.crowd import load_labelme as load_labelme
from appellate.datasets.crowd import load_music_genre as load_music_genre
from appellate.datasets.crowd import load_plcifar10 as load_plcifar10
from appellate.datasets.crowd import load_rte as load_rte
from appellate.datasets.crowd import load_sentence_polarity as load_sentence_polarity
from appellate.datasets.images import load_cifar10 as load_cifar10
from appellate.datasets.images import load_cifar100 as load_cifar100
from appellate.datasets.images import load_fashion_mnist as load_fashion_mnist
from appellate.datasets.realworld import load_birdsong as load_birdsong
from appellate.datasets.realworld import load_fgnet as load_fgnet
from appellate.datasets.realworld import load_lost as load_lost
from appellate.datasets.realworld import load_mirflickr as load_mirflickr
from appellate.datasets.realworld import load_msrcv2 as load_msrcv2
from appellate.datasets.realworld import load_soccer_player as load_soccer_player
from appellate.datasets.realworld import load_yahoo_news as load_yahoo_news
