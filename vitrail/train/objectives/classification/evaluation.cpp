// SPDX-License-Identifier: Apache-2.0
#include "vitrail/train/objectives/classification/evaluation_internal.h"

#include <algorithm>
#include <cmath>

#include "vitrail/autograd/variable.h"
#include "vitrail/base/error.h"

namespace vitrail::train {
namespace {

// Adds one image with these logits [classes] to the sums in `result`.
void add_image(const float* logits, int64_t classes, int64_t label, int64_t sample, ClassEvaluation& result) {
  int64_t best = 0, rank = 0;  // rank: position of the label among the classes, in the order of data::top_k
  double sum = 0;              // Σ exp(logit − largest logit)
  for (int64_t c = 1; c < classes; ++c) {
    if (logits[c] > logits[best]) best = c;
  }
  for (int64_t c = 0; c < classes; ++c) {
    sum += std::exp(static_cast<double>(logits[c]) - logits[best]);
    if (logits[c] > logits[label] || (logits[c] == logits[label] && c < label)) ++rank;
  }
  const double log_probability = static_cast<double>(logits[label]) - logits[best] - std::log(sum);
  ++result.images;
  result.loss -= log_probability;
  result.top1 += rank == 0;
  result.top5 += rank < 5;
  ++result.confusion[static_cast<size_t>(label)][static_cast<size_t>(best)];
  if (best == label) return;
  result.worst.push_back({sample, label, best, 1 / sum, std::exp(log_probability)});
}

// Adds one image with these targets [classes] of 0 and 1.
void add_labels(const float* logits, const float* targets, int64_t classes, ClassEvaluation& result) {
  std::vector<int64_t> labels;
  double loss = 0;
  for (int64_t c = 0; c < classes; ++c) {
    const double x = logits[c];
    if (targets[c] > 0) labels.push_back(c);
    loss += std::max(x, 0.0) - x * targets[c] + std::log1p(std::exp(-std::abs(x)));
  }
  result.loss += loss / static_cast<double>(classes);
  if (!result.labels) result.labels.emplace(classes);
  if (std::isfinite(loss)) result.labels->add({logits, static_cast<size_t>(classes)}, labels, "validation");
  ++result.images;
}

void add_batch(const data::Batch& batch, const Tensor& logits, int64_t classes, ClassEvaluation& result) {
  const auto* rows = logits.data<float>();
  for (int64_t i = 0; i < logits.size(0); ++i) {
    if (batch.targets.defined()) {
      add_labels(rows + i * classes, batch.targets.data<float>() + i * classes, classes, result);
    } else {
      add_image(rows + i * classes, classes, batch.labels.data<int64_t>()[i], batch.samples[static_cast<size_t>(i)],
                result);
    }
  }
}

}  // namespace

void keep_worst(std::vector<Misclassification>& worst) {
  std::stable_sort(worst.begin(), worst.end(), [](const Misclassification& a, const Misclassification& b) {
    return a.label_probability < b.label_probability;
  });
  if (worst.size() > kMaxMisclassifications) worst.resize(kMaxMisclassifications);
}

ClassEvaluation evaluate(models::VisionTransformer& model, data::Loader& loader, int64_t classes,
                         const std::function<void(int64_t, int64_t)>& progress) {
  const autograd::NoGrad no_grad;
  model.eval();
  ClassEvaluation result;
  result.confusion.assign(static_cast<size_t>(classes), std::vector<int64_t>(static_cast<size_t>(classes)));
  loader.start(0);
  for (int64_t step = 1; auto batch = loader.next(); ++step) {
    result.skipped += static_cast<int64_t>(batch->skipped.size());
    if (batch->images.size(0) > 0) {
      const Tensor logits = model.forward(batch->images).to(DType::f32).contiguous();
      add_batch(*batch, logits, classes, result);
      keep_worst(result.worst);
    }
    if (progress) progress(step, loader.steps_per_epoch());
  }
  const auto images = static_cast<double>(std::max<int64_t>(result.images, 1));
  result.loss /= images;
  result.top1 /= images;
  result.top5 /= images;
  if (!result.labels) return result;
  result.confusion.clear();
  result.top1 = result.labels->macro_average_precision().value_or(0);
  result.top5 = result.labels->micro_average().f1;
  return result;
}

}  // namespace vitrail::train
