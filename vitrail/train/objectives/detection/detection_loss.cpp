// SPDX-License-Identifier: Apache-2.0
#include "vitrail/train/objectives/detection/detection_loss_internal.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "vitrail/analysis/linear_assignment.h"
#include "vitrail/ops/box_loss.h"
#include "vitrail/ops/embedding.h"
#include "vitrail/ops/loss.h"

namespace vitrail::train {
namespace {

// Costs of LW-DETR's focal loss in the assignment, and the exponent of the probability in a quality.
constexpr double kAlpha = 0.25, kLogEpsilon = 1e-8;
constexpr double kMinQuality = 0.01;
// Stands for a cost that is not finite: such a prediction gets an object only if no other is left.
constexpr double kWorstCost = 1e30;

double sigmoid_of(float logit) { return 1 / (1 + std::exp(-static_cast<double>(logit))); }

// The cost of a class for a prediction.
double class_cost(std::span<const float> logits, int64_t index, ClassLoss loss) {
  const float logit = logits[static_cast<size_t>(index)];
  if (loss == ClassLoss::softmax) {
    double sum = 0;
    for (const float other : logits) sum += std::exp(static_cast<double>(other - logit));
    return -1 / sum;
  }
  const double p = sigmoid_of(logit);
  return -kAlpha * (1 - p) * (1 - p) * std::log(p + kLogEpsilon) + (1 - kAlpha) * p * p * std::log(1 - p + kLogEpsilon);
}

// A prediction and the object that it is assigned to.
struct Match {
  int64_t row = 0;  // in [B · Q, …]
  int64_t index = 0;
  const float* box = nullptr;
};

// The values of an output.
class Predictions {
 public:
  Predictions(const DetectorOutput& output, const DetectionLossOptions& options)
      : options_(options),
        queries_(output.logits.size(1)),
        classes_(output.logits.size(2)),
        logits_(output.logits.detach().to(DType::f32).contiguous()),
        boxes_(output.boxes.detach().to(DType::f32).contiguous()) {}

  std::vector<Match> matches(const std::vector<DetectionTargets>& targets) const {
    std::vector<Match> result;
    const int64_t size = queries_ / options_.groups;
    for (int64_t image = 0; image < std::ssize(targets); ++image) {
      for (int64_t group = 0; group < options_.groups; ++group)
        match(targets[static_cast<size_t>(image)], image * queries_ + group * size, size, result);
    }
    return result;
  }

  const float* box(int64_t row) const { return boxes_.data<float>() + row * 4; }
  std::span<const float> logits(int64_t row) const {
    return {logits_.data<float>() + row * classes_, static_cast<size_t>(classes_)};
  }

 private:
  void match(const DetectionTargets& targets, int64_t first, int64_t rows, std::vector<Match>& result) const {
    const int64_t objects = std::ssize(targets.classes);
    std::vector<double> costs;
    costs.reserve(static_cast<size_t>(rows * objects));
    for (int64_t row = first; row < first + rows; ++row) {
      for (int64_t i = 0; i < objects; ++i)
        costs.push_back(cost(row, targets.classes[static_cast<size_t>(i)], targets.boxes.data() + 4 * i));
    }
    const std::vector<int64_t> object_of = analysis::linear_assignment(costs, rows, objects);
    for (int64_t row = 0; row < rows; ++row) {
      const int64_t i = object_of[static_cast<size_t>(row)];
      if (i >= 0)
        result.push_back({first + row, targets.classes[static_cast<size_t>(i)], targets.boxes.data() + 4 * i});
    }
  }

  double cost(int64_t row, int64_t index, const float* target) const {
    const float* const predicted = box(row);
    double l1 = 0;
    for (int64_t i = 0; i < 4; ++i) l1 += std::abs(static_cast<double>(predicted[i]) - static_cast<double>(target[i]));
    const double total = options_.l1_cost * l1 - options_.giou_cost * ops::box_overlap(predicted, target).giou +
                         options_.class_cost * class_cost(logits(row), index, options_.classes);
    return std::isfinite(total) ? total : kWorstCost;
  }

  const DetectionLossOptions& options_;
  int64_t queries_, classes_;
  Tensor logits_, boxes_;
};

// The weighted mean over all predictions; those without an object have the last class.
Tensor softmax_loss(const Tensor& logits, const std::vector<Match>& matches, double no_object_weight) {
  const int64_t rows = logits.size(0), classes = logits.size(1);
  const Tensor labels = Tensor::empty({rows}, DType::i64);
  std::fill_n(labels.data<int64_t>(), rows, classes - 1);
  for (const Match& match : matches) labels.data<int64_t>()[match.row] = match.index;
  const Tensor weights = Tensor::full({classes}, 1);
  weights.data<float>()[classes - 1] = static_cast<float>(no_object_weight);
  return ops::cross_entropy(logits, labels, 0, weights);
}

// The quality of a prediction is p^α IoU^(1 − α).
Tensor quality_loss(const Tensor& logits, const std::vector<Match>& matches, const Predictions& predictions) {
  const Tensor qualities = Tensor::zeros(logits.shape());
  for (const Match& match : matches) {
    const double p = sigmoid_of(predictions.logits(match.row)[static_cast<size_t>(match.index)]);
    const double iou = ops::box_overlap(predictions.box(match.row), match.box).iou;
    const double quality = std::pow(p, kAlpha) * std::pow(iou, 1 - kAlpha);
    qualities.data<float>()[match.row * logits.size(1) + match.index] =
        static_cast<float>(std::max(quality, kMinQuality));
  }
  return ops::iou_aware_loss(logits, qualities);
}

Tensor loss_of(const DetectorOutput& output, const std::vector<DetectionTargets>& targets, double objects,
               const DetectionLossOptions& options) {
  const Predictions predictions(output, options);
  const std::vector<Match> matches = predictions.matches(targets);
  const int64_t rows = output.logits.size(0) * output.logits.size(1);
  const Tensor logits = output.logits.view({rows, output.logits.size(2)});
  const bool softmax = options.classes == ClassLoss::softmax;
  std::vector<Tensor> terms{softmax ? softmax_loss(logits, matches, options.no_object_weight)
                                    : quality_loss(logits, matches, predictions)};
  std::vector<double> weights{softmax ? options.class_weight : options.class_weight / objects};
  if (!matches.empty()) {
    const Tensor ids = Tensor::empty({std::ssize(matches)}, DType::i64);
    const Tensor wanted = Tensor::empty({std::ssize(matches), 4});
    for (size_t i = 0; i < matches.size(); ++i) {
      ids.data<int64_t>()[i] = matches[i].row;
      std::copy_n(matches[i].box, 4, wanted.data<float>() + 4 * i);
    }
    const Tensor boxes = ops::embedding(ids, output.boxes.view({rows, 4}));
    terms.push_back(ops::box_l1_loss(boxes, wanted));
    terms.push_back(ops::giou_loss(boxes, wanted));
    weights.push_back(options.l1_weight / objects);
    weights.push_back(options.giou_weight / objects);
  }
  return ops::weighted_sum(terms, weights);
}

}  // namespace

Tensor detection_loss(const std::vector<DetectorOutput>& outputs, const std::vector<DetectionTargets>& targets,
                      const DetectionLossOptions& options) {
  int64_t objects = 0;
  for (const DetectionTargets& image : targets) objects += std::ssize(image.classes);
  const auto divisor = static_cast<double>(std::max<int64_t>(1, objects * options.groups));
  std::vector<Tensor> losses;
  for (const DetectorOutput& output : outputs) losses.push_back(loss_of(output, targets, divisor, options));
  return ops::weighted_sum(losses, std::vector<double>(losses.size(), 1));
}

}  // namespace vitrail::train
