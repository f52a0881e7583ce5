"""Feature maps: nonlinear rankers from linear learners.

A `FeatureMap` has the settings, such as `Bins(32)`. `fit` computes a `FittedMap` from the training data. It transforms
a row of (scaled) features into the input of the linear learner, and is stored in the model.

| command line | settings | what a linear learner then is |
|---|---|---|
| `bins:32` | `Bins(32)` | a sum of step functions, one per feature |
| `bins-linear:32` | `LinearBins(32)` | a sum of piecewise linear functions, one per feature |
| `rff:500` | `RandomFourier(500)` | a linear function, plus approximate Gaussian kernels of two features each |
| `nystroem:200` | `Nystroem(200)` | a linear function, plus a Gaussian kernel machine on 200 landmarks |
| `products:50` | `Products(50)` | a linear function, plus a quadratic one of 50 features |
| `leaves:60` | `Leaves(60)` | a linear function, plus 60 trees |
"""

from ranktron.data.maps.bins import Bins
from ranktron.data.maps.gaussian import Nystroem, RandomFourier
from ranktron.data.maps.leaves import Leaves
from ranktron.data.maps.linear_bins import LinearBins
from ranktron.data.maps.naming import as_map
from ranktron.data.maps.products import Products
from ranktron.data.maps.protocols import FeatureMap, FittedMap

__all__ = ["Bins", "FeatureMap", "FittedMap", "Leaves", "LinearBins", "Nystroem", "Products", "RandomFourier", "as_map"]
