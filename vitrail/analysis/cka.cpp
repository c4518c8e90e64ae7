// SPDX-License-Identifier: Apache-2.0
#include "vitrail/analysis/cka.h"

#include <cmath>

#include "vitrail/base/error.h"
#include "vitrail/base/parallel.h"

namespace vitrail::analysis {
namespace {

// X Xᵀ of a layer's centred features with zeros on the diagonal, as the unbiased estimator takes it.
struct Gram {
  std::vector<double> values;    // [n, n]
  std::vector<double> row_sums;  // [n]
  double sum = 0;
};

double inner_product(const double* a, const double* b, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += a[i] * b[i];
  return sum;
}

// The values [n, features] without their means over the images.  HSIC does not change, but its rounding does: a large
// common part of all images would leave few digits of what differs.
std::vector<double> centred_features(const Tensor& layer) {
  const Tensor x = layer.contiguous();
  const int64_t n = x.size(0), features = x.numel() / n;
  std::vector<double> values(x.data<float>(), x.data<float>() + x.numel());
  for (int64_t feature = 0; feature < features; ++feature) {
    double mean = 0;
    for (int64_t i = 0; i < n; ++i) mean += values[static_cast<size_t>(i * features + feature)];
    mean /= static_cast<double>(n);
    for (int64_t i = 0; i < n; ++i) values[static_cast<size_t>(i * features + feature)] -= mean;
  }
  return values;
}

Gram gram_of(const Tensor& layer) {
  const std::vector<double> x = centred_features(layer);
  const int64_t n = layer.size(0), features = layer.numel() / n;
  Gram gram{std::vector<double>(static_cast<size_t>(n * n)), std::vector<double>(static_cast<size_t>(n))};
  parallel_for_balanced(0, n, 1, [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) {
      for (int64_t j = 0; j < i; ++j) {
        const double product = inner_product(x.data() + i * features, x.data() + j * features, features);
        gram.values[static_cast<size_t>(i * n + j)] = gram.values[static_cast<size_t>(j * n + i)] = product;
      }
    }
  });
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < n; ++j)
      gram.row_sums[static_cast<size_t>(i)] += gram.values[static_cast<size_t>(i * n + j)];
    gram.sum += gram.row_sums[static_cast<size_t>(i)];
  }
  return gram;
}

// The unbiased estimator (Song et al. 2012, eq. 5):
//   (tr(KL) + 1ᵀK1 · 1ᵀL1 / ((n − 1)(n − 2)) − 2 · 1ᵀKL1 / (n − 2)) / (n (n − 3)).
double hsic(const Gram& k, const Gram& l) {
  const auto n = static_cast<double>(k.row_sums.size());
  double trace = 0, rows = 0;
  for (size_t i = 0; i < k.values.size(); ++i) trace += k.values[i] * l.values[i];
  for (size_t i = 0; i < k.row_sums.size(); ++i) rows += k.row_sums[i] * l.row_sums[i];
  return (trace + k.sum * l.sum / ((n - 1) * (n - 2)) - 2 * rows / (n - 2)) / (n * (n - 3));
}

void check_batch(const std::vector<Tensor>& layers, int64_t before) {
  if (layers.empty()) throw Error("CKA", "at least one layer", "none");
  if (before > 0 && std::ssize(layers) != before)
    throw Error("CKA", str("the ", before, " layers of the batches before"), str(layers.size()));
  const int64_t images = layers.front().size(0);
  if (images < 4) throw Error("CKA", "at least 4 images in a batch", str(images));
  for (const Tensor& layer : layers) {
    if (layer.size(0) != images) throw Error("CKA", str(images, " images in each layer"), str(layer.size(0)));
  }
}

}  // namespace

void LinearCka::add(const std::vector<Tensor>& layers) {
  check_batch(layers, layers_);
  std::vector<Gram> grams;
  for (const Tensor& layer : layers) grams.push_back(gram_of(layer));
  layers_ = std::ssize(layers);
  hsic_.resize(layers.size() * layers.size());
  for (size_t i = 0; i < layers.size(); ++i) {
    for (size_t j = 0; j < layers.size(); ++j) hsic_[i * layers.size() + j] += hsic(grams[i], grams[j]);
  }
}

Tensor LinearCka::similarities() const {
  if (layers_ == 0) throw Error("CKA", "at least one batch of images", "none");
  const Tensor result = Tensor::empty({layers_, layers_});
  const auto own = [&](int64_t i) { return hsic_[static_cast<size_t>(i * layers_ + i)]; };
  for (int64_t i = 0; i < layers_; ++i) {
    for (int64_t j = 0; j < layers_; ++j) {
      const double between = hsic_[static_cast<size_t>(i * layers_ + j)];
      result.data<float>()[i * layers_ + j] = static_cast<float>(between / std::sqrt(own(i) * own(j)));
    }
  }
  return result;
}

}  // namespace vitrail::analysis
