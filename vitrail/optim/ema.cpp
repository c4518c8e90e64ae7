// SPDX-License-Identifier: Apache-2.0
#include "vitrail/optim/ema.h"

#include <algorithm>
#include <cmath>

#include "vitrail/base/error.h"
#include "vitrail/base/parallel.h"
#include "vitrail/kernels/optimizer/weight_update.h"
#include "vitrail/optim/chunks_internal.h"
#include "vitrail/optim/named_tensors_internal.h"
#include "vitrail/optim/rules_internal.h"

namespace vitrail::optim {
namespace {

// Calls body(average, weight, count) in parallel for each chunk of each pair of tensors.
template <class Body>
void for_each_pair(const std::vector<nn::NamedTensor>& average, const std::vector<nn::NamedTensor>& weights,
                   Body body) {
  std::vector<Parameter> parameters;
  for (const nn::NamedTensor& entry : average) parameters.push_back({entry.name, entry.tensor});
  const std::vector<Chunk> chunks = make_chunks(parameters);
  parallel_for(0, static_cast<int64_t>(chunks.size()), 1, [&](int64_t first, int64_t last) {
    for (int64_t c = first; c < last; ++c) {
      const Tensor &a = average[chunks[c].parameter].tensor, &w = weights[chunks[c].parameter].tensor;
      dispatch_weights(a, [&](auto tag) {
        using T = decltype(tag);
        body(a.data<T>() + chunks[c].first, w.data<T>() + chunks[c].first, chunks[c].count);
      });
    }
  });
}

}  // namespace

Ema::Ema(std::vector<nn::NamedTensor> weights, const EmaOptions& options)
    : weights_(std::move(weights)), options_(options) {
  const EmaOptions& o = options;
  if (!(o.decay >= 0 && o.decay < 1)) throw Error("ema", "a decay in [0, 1)", str(o.decay));
  if (!(o.min_decay >= 0 && o.min_decay <= o.decay)) {
    throw Error("ema", str("a min_decay from 0 to the decay ", o.decay), str(o.min_decay));
  }
  if (!(o.warmup_gamma > 0) || !(o.warmup_power > 0)) {
    throw Error("ema", "a warm-up with gamma and power above 0", str(o.warmup_gamma, " and ", o.warmup_power));
  }
  check_trainable(weights_, "ema");
  for (const nn::NamedTensor& entry : weights_) average_.push_back({entry.name, entry.tensor.detach().clone()});
}

double Ema::decay(int64_t step) const {
  const int64_t updates = std::max<int64_t>(0, step - options_.after_step - 1);
  if (updates == 0) return 0;
  if (!options_.warmup) return options_.decay;
  const double warming = 1 - std::pow(1 + static_cast<double>(updates) / options_.warmup_gamma, -options_.warmup_power);
  return std::max(std::min(warming, options_.decay), options_.min_decay);
}

bool Ema::warmed_up(int64_t step) const {
  const double limit = std::exp(-1.0);
  double share = 1;  // share of the first copy in the average
  for (int64_t s = options_.after_step + 2; s <= step && share > limit; ++s) share *= decay(s);
  return share <= limit;
}

void update_average(const std::vector<nn::NamedTensor>& average, const std::vector<nn::NamedTensor>& weights,
                    double decay) {
  for_each_pair(average, weights, [&](auto* a, auto* w, int64_t n) { kernels::lerp(a, w, n, 1 - decay); });
}

void Ema::update(int64_t step) { update_average(average_, weights_, decay(step)); }

void Ema::swap() const {
  for_each_pair(average_, weights_, [](auto* a, auto* w, int64_t n) { std::swap_ranges(a, a + n, w); });
}

void Ema::load(const std::vector<nn::NamedTensor>& average) { copy_by_name(average, average_, "ema"); }

}  // namespace vitrail::optim
