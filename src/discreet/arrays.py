"""The array types of the package, each named once.

    Floats    float64
    Ints      int64
    Codes     int64, the codes of a column's values
    Mask      booleans
    Words     unsigned 64-bit words
    IntArray  sums: int64, or Python integers as objects where 64 bits may not hold them

`discreet.data` exports them too.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Codes = NDArray[np.int64]
Mask = NDArray[np.bool_]
Words = NDArray[np.uint64]
IntArray = NDArray[Any]
