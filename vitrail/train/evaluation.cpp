// SPDX-License-Identifier: Apache-2.0
#include "vitrail/train/evaluation.h"

#include <algorithm>
#include <cmath>

#include "vitrail/autograd/variable.h"
#include "vitrail/base/error.h"

namespace vitrail::train {
namespace {

// One image's logits counted.
void count(const float* logits, int64_t classes, int64_t truth, int64_t sample, Evaluation& result) {
  int64_t best = 0, before = 0;  // `before`: classes that come before the true one, as data::top_k orders them
  double total = 0;
  for (int64_t c = 1; c < classes; ++c) {
    if (logits[c] > logits[best]) best = c;
  }
  for (int64_t c = 0; c < classes; ++c) {
    total += std::exp(static_cast<double>(logits[c]) - logits[best]);
    if (logits[c] > logits[truth] || (logits[c] == logits[truth] && c < truth)) ++before;
  }
  const double log_truth = static_cast<double>(logits[truth]) - logits[best] - std::log(total);
  ++result.images;
  result.loss -= log_truth;
  result.top1 += before == 0;
  result.top5 += before < 5;
  ++result.confusion[static_cast<size_t>(truth)][static_cast<size_t>(best)];
  if (best == truth) return;
  result.worst.push_back({sample, truth, best, 1 / total, std::exp(log_truth)});
}

}  // namespace

void keep_worst(std::vector<WrongAnswer>& worst) {
  std::stable_sort(worst.begin(), worst.end(),
                   [](const WrongAnswer& a, const WrongAnswer& b) { return a.truth_confidence < b.truth_confidence; });
  if (worst.size() > kWorstAnswers) worst.resize(kWorstAnswers);
}

Evaluation evaluate(models::VisionTransformer& model, data::Loader& loader, int64_t classes,
                    const std::function<void(int64_t, int64_t)>& progress) {
  const autograd::NoGrad no_grad;
  model.eval();
  Evaluation result;
  result.confusion.assign(static_cast<size_t>(classes), std::vector<int64_t>(static_cast<size_t>(classes)));
  loader.start(0);
  for (int64_t step = 1; auto batch = loader.next(); ++step) {
    result.skipped += static_cast<int64_t>(batch->skipped.size());
    if (batch->images.size(0) > 0) {
      const Tensor logits = model.forward(batch->images).to(DType::f32).contiguous();
      const auto* labels = batch->labels.data<int64_t>();
      for (int64_t i = 0; i < logits.size(0); ++i)
        count(logits.data<float>() + i * classes, classes, labels[i], batch->samples[static_cast<size_t>(i)], result);
      keep_worst(result.worst);
    }
    if (progress) progress(step, loader.steps_per_epoch());
  }
  const auto images = static_cast<double>(std::max<int64_t>(result.images, 1));
  result.loss /= images;
  result.top1 /= images;
  result.top5 /= images;
  return result;
}

}  // namespace vitrail::train
