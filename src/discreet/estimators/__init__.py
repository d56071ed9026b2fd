"""The scikit-learn faces: no mathematics, only parameters, rows and one charge.

    Mean, Median, Quantile                 one number of a column                        location.py
    LinearRegression, LogisticRegression   linear models                                 linear.py
    MLPClassifier                          a small neural network                        network.py
    DeclaredScaler                         features to [-1, 1] by declared bounds        scaler.py
    StandardScaler, PCA                    by private moments                            moments.py
    select_model                           one of several fitted models, for one charge  selection.py
    BoxClassifier                          a box of numbers                              boxes.py
    ConjunctionClassifier                  a conjunction of booleans                     conjunctions.py
    RuleClassifier, FiniteClassClassifier  conditions on a table; any finite list        rules.py
    interior_point, suggest_bounds         a point between values; bounds for a column   location.py
    load                                   a fitted model from a file                    loading.py

They share base.py (terms, one charge), input.py (reads rows), replay.py (stored models), model_file.py (models as
JSON), model_words.py (how they show themselves), pipelines.py (refuses steps that leak); learners of rules rules.py.

They follow scikit-learn's contract: `get_params`, `clone`, pipelines, `set_output`, pickling of fitted models. A fit is
random, and nothing about it can be seeded. A ledger in a parameter is shared by all clones, and pickles as its path as
long as nothing is fitted. A fitted model is public: it pickles without its ledger, predicts anywhere, and does not fit
again.
"""

from discreet.estimators.boxes import BoxClassifier
from discreet.estimators.conjunctions import ConjunctionClassifier
from discreet.estimators.linear import LinearRegression, LogisticRegression
from discreet.estimators.loading import estimator_named, load
from discreet.estimators.location import Interior, Mean, Median, Quantile, Suggested, interior_point, suggest_bounds
from discreet.estimators.moments import PCA, StandardScaler
from discreet.estimators.network import MLPClassifier, widths
from discreet.estimators.replay import forget, pay_again
from discreet.estimators.rules import FiniteClassClassifier, RuleClassifier
from discreet.estimators.scaler import DeclaredScaler
from discreet.estimators.selection import Selected, select_model
