"""The base classifiers, for type checkers. ``python tests/test_api.py`` writes this file."""

from appellate.methods.aggd import AGGDClassifier as AGGDClassifier
from appellate.methods.clpl import CLPLClassifier as CLPLClassifier
from appellate.methods.ecoc import PLECOCClassifier as PLECOCClassifier
from appellate.methods.ipal import IPALClassifier as IPALClassifier
from appellate.methods.knn import PLKNNClassifier as PLKNNClassifier
from appellate.methods.lalo import LALOClassifier as LALOClassifier
from appellate.methods.plcl import PLCLClassifier as PLCLClassifier
from appellate.methods.sure import SUREClassifier as SUREClassifier
from appellate.methods.svm import PLSVMClassifier as PLSVMClassifier
