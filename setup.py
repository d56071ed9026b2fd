"""Adds the tour and the labs to the packages: they live in examples, and installed commands import them."""

from setuptools import find_packages, setup

setup(
    packages=[*find_packages("src"), "discreet_labs", "discreet_tour"],
    package_dir={"": "src", "discreet_labs": "examples/labs", "discreet_tour": "examples/tour"},
)
