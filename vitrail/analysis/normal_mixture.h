// SPDX-License-Identifier: Apache-2.0
#pragma once
// A mixture of two normal distributions of a quantity.
#include <array>
#include <cstddef>
#include <vector>

namespace vitrail::analysis {

struct NormalMixture {
  struct Component {
    double weight = 0, mean = 0, deviation = 0;  // the weights of both add up to 1
  };
  std::array<Component, 2> components;  // the lower mean first
  double log_likelihood = 0;            // the sum over all values, natural logarithm

  // The logarithm of a component's weight times its density.
  double log_density(size_t component, double x) const;
};

// The maximum likelihood by expectation maximisation (Dempster et al. 1977; Bishop 2006, section 9.2.2), from the split
// into two groups that has the least squared distances from their means.  1e-6 is added to each variance, as
// scikit-learn's GaussianMixture does.  Deterministic.  Throws Error for fewer than two values, and for one that is not
// finite.
NormalMixture fit_normal_mixture(std::vector<double> values);

}  // namespace vitrail::analysis
