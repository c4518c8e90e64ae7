// SPDX-License-Identifier: Apache-2.0
#include "vitrail/analysis/logistic_regression.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "vitrail/analysis/lbfgs_internal.h"
#include "vitrail/base/error.h"
#include "vitrail/base/parallel.h"

namespace vitrail::analysis {
namespace {

constexpr int64_t kRowsPerThread = 64, kColumnsPerThread = 16;  // shorter loops are not worth a thread

// Σ aᵢ·bᵢ.  Separate partial sums allow vector instructions, in an order that does not depend on them.
double dot(const double* a, const double* b, int64_t n) {
  std::array<double, 8> sums{};
  int64_t i = 0;
  for (; i + 8 <= n; i += 8) {
    for (size_t lane = 0; lane < 8; ++lane)
      sums[lane] += a[i + static_cast<int64_t>(lane)] * b[i + static_cast<int64_t>(lane)];
  }
  double sum = 0;
  for (; i < n; ++i) sum += a[i] * b[i];
  for (const double lane : sums) sum += lane;
  return sum;
}

// log Σ exp(zₖ), without overflow.
double log_sum_exp(const double* z, int64_t classes) {
  const double max = *std::max_element(z, z + classes);
  double sum = 0;
  for (int64_t k = 0; k < classes; ++k) sum += std::exp(z[k] - max);
  return max + std::log(sum);
}

// The objective of fit_logistic_regression and its gradient.  Parameters are W row by row, then b.
class Regression {
 public:
  Regression(const Tensor& features, const std::vector<int64_t>& labels, int64_t classes, double c)
      : features_(features.to(DType::f64).contiguous()),
        x_(features_.data<double>()),
        labels_(labels),
        n_(features_.size(0)),
        width_(features_.size(1)),
        classes_(classes),
        penalty_((classes == 2 ? 2 : 1) / (c * static_cast<double>(n_))),
        residuals_(static_cast<size_t>(n_ * classes)),
        losses_(static_cast<size_t>(n_)) {}

  double operator()(const std::vector<double>& parameters, std::vector<double>& gradient) {
    const double *weight = parameters.data(), *bias = weight + classes_ * width_;
    compute_residuals(weight, bias);
    double loss = 0, squares = 0;
    for (const double row : losses_) loss += row;
    for (int64_t i = 0; i < classes_ * width_; ++i) squares += weight[i] * weight[i];
    compute_gradient(weight, gradient);
    return loss / static_cast<double>(n_) + penalty_ / 2 * squares;
  }

 private:
  // residuals = (softmax(z) − one-hot(y)) / n, the gradient of the mean loss with respect to the logits z.
  void compute_residuals(const double* weight, const double* bias) {
    parallel_for(0, n_, kRowsPerThread, [&](int64_t first, int64_t last) {
      for (int64_t i = first; i < last; ++i) {
        double* z = residuals_.data() + i * classes_;
        for (int64_t k = 0; k < classes_; ++k) z[k] = dot(x_ + i * width_, weight + k * width_, width_) + bias[k];
        const double normalizer = log_sum_exp(z, classes_);
        const int64_t label = labels_[static_cast<size_t>(i)];
        losses_[static_cast<size_t>(i)] = normalizer - z[label];
        for (int64_t k = 0; k < classes_; ++k)
          z[k] = (std::exp(z[k] - normalizer) - (k == label ? 1 : 0)) / static_cast<double>(n_);
      }
    });
  }

  // residualsᵀ·x + λ·W, and the columns' sums of the residuals for b.  Each element is a sum over the rows in order,
  // whatever the number of threads.
  void compute_gradient(const double* weight, std::vector<double>& gradient) {
    const int64_t weights = classes_ * width_;
    for (int64_t i = 0; i < weights; ++i) gradient[static_cast<size_t>(i)] = penalty_ * weight[i];
    std::fill(gradient.begin() + weights, gradient.end(), 0.0);
    for (int64_t i = 0; i < n_; ++i) {
      for (int64_t k = 0; k < classes_; ++k)
        gradient[static_cast<size_t>(weights + k)] += residuals_[static_cast<size_t>(i * classes_ + k)];
    }
    parallel_for(0, width_, kColumnsPerThread, [&](int64_t first, int64_t last) {
      for (int64_t i = 0; i < n_; ++i) {
        const double* row = x_ + i * width_;
        for (int64_t k = 0; k < classes_; ++k) {
          const double residual = residuals_[static_cast<size_t>(i * classes_ + k)];
          double* to = gradient.data() + k * width_;
          for (int64_t d = first; d < last; ++d) to[d] += residual * row[d];
        }
      }
    });
  }

  Tensor features_;
  const double* x_;
  const std::vector<int64_t>& labels_;
  int64_t n_, width_, classes_;
  double penalty_;                          // λ
  std::vector<double> residuals_, losses_;  // [n, classes] and [n]
};

void check_arguments(const Tensor& features, const std::vector<int64_t>& labels, int64_t classes,
                     const LogisticRegressionOptions& options) {
  const char* where = "logistic regression";
  if (!(options.c > 0)) throw Error(where, "C above 0", str(options.c));
  if (classes < 2) throw Error(where, "at least two classes", str(classes));
  if (features.rank() != 2) throw Error(where, "features [n, D]", features.shape().to_string());
  const int64_t n = features.size(0);
  if (n == 0 || static_cast<int64_t>(labels.size()) != n)
    throw Error(where, str("a label for each of ", n, " rows of features"), str(labels.size()));
  for (const int64_t label : labels) {
    if (label < 0 || label >= classes) throw Error(where, str("labels below ", classes), str(label));
  }
  const Tensor values = features.to(DType::f64).contiguous();
  const bool finite = std::all_of(values.data<double>(), values.data<double>() + values.numel(),
                                  [](double value) { return std::isfinite(value); });
  if (!finite) throw Error(where, "finite features", "NaN or infinity");
}

// Parameters in the order of Regression: those of `start`, or zeros.
std::vector<double> initial_parameters(const LinearClassifier* start, int64_t classes, int64_t width) {
  std::vector<double> parameters(static_cast<size_t>(classes * (width + 1)));
  if (!start) return parameters;
  const Tensor weight = start->weight.contiguous(), bias = start->bias.contiguous();
  std::copy_n(weight.data<double>(), classes * width, parameters.begin());
  std::copy_n(bias.data<double>(), classes, parameters.begin() + classes * width);
  return parameters;
}

}  // namespace

LinearClassifier fit_logistic_regression(const Tensor& features, const std::vector<int64_t>& labels, int64_t classes,
                                         const LogisticRegressionOptions& options, const LinearClassifier* start) {
  check_arguments(features, labels, classes, options);
  const int64_t width = features.size(1);
  Regression regression(features, labels, classes, options.c);
  const LbfgsResult found = minimize_lbfgs(
      [&](const std::vector<double>& x, std::vector<double>& gradient) { return regression(x, gradient); },
      initial_parameters(start, classes, width),
      {.tolerance = options.tolerance, .max_iterations = options.max_iterations});
  LinearClassifier classifier{Tensor::empty({classes, width}, DType::f64), Tensor::empty({classes}, DType::f64),
                              found.iterations, found.largest_gradient, found.converged};
  std::copy_n(found.x.data(), classes * width, classifier.weight.data<double>());
  std::copy_n(found.x.data() + classes * width, classes, classifier.bias.data<double>());
  return classifier;
}

Tensor logits(const LinearClassifier& classifier, const Tensor& features) {
  const Tensor x = features.to(DType::f64).contiguous();
  const int64_t classes = classifier.weight.size(0), width = classifier.weight.size(1);
  const Tensor result = Tensor::empty({x.size(0), classes}, DType::f64);
  for (int64_t i = 0; i < x.size(0); ++i) {
    for (int64_t k = 0; k < classes; ++k)
      result.data<double>()[i * classes + k] =
          dot(x.data<double>() + i * width, classifier.weight.data<double>() + k * width, width) +
          classifier.bias.data<double>()[k];
  }
  return result;
}

Fit fit_of(const Tensor& logits, const std::vector<int64_t>& labels) {
  const int64_t n = logits.size(0), classes = logits.size(1);
  Fit fit;
  for (int64_t i = 0; i < n; ++i) {
    const double* z = logits.data<double>() + i * classes;
    const int64_t label = labels[static_cast<size_t>(i)];
    fit.loss += log_sum_exp(z, classes) - z[label];
    fit.top1 += std::max_element(z, z + classes) - z == label;
  }
  fit.loss /= static_cast<double>(n);
  fit.top1 /= static_cast<double>(n);
  return fit;
}

}  // namespace vitrail::analysis
