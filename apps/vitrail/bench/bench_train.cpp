// SPDX-License-Identifier: Apache-2.0
#include "apps/vitrail/bench/bench_train.h"
#include "apps/vitrail/output/output.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <map>

#include "vitrail/autograd/engine.h"
#include "vitrail/base/parallel.h"
#include "vitrail/models/flops.h"
#include "vitrail/nn/dropout.h"
#include "vitrail/ops/loss.h"
#include "vitrail/ops/precision.h"
#include "vitrail/optim/optimizer.h"
#include "vitrail/tensor/caching_allocator.h"

namespace vitrail::app {
namespace {

using Clock = std::chrono::steady_clock;

double milliseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

// A model in training with its optimiser and one batch, repeated in every step.
class Training {
 public:
  Training(models::VisionTransformer& model, const TrainingSetup& setup) : model_(model), precision_(setup.precision) {
    const int64_t batch = setup.batch;
    const auto& config = model.config();
    const auto [height, width] = setup.image_size.value_or(config.img_size);
    images_ = Tensor::randn({batch, config.in_chans, height, width}, 1);
    labels_ = Tensor::zeros({batch}, DType::i64);
    for (int64_t i = 0; i < batch; ++i) labels_.data<int64_t>()[i] = i % config.num_classes;
    model.train();
    optimizer_ = optim::make_optimizer({}, optim::parameter_groups(model, {}));
  }

  // Calls on_phase(name, milliseconds) after each of forward, backward and update.
  template <class F>
  void step(F&& on_phase, const autograd::BackwardOptions& options = {}) {
    const nn::RandomScope scope(0, static_cast<uint64_t>(optimizer_->steps()));
    const ops::MixedPrecision precision(precision_);
    auto start = Clock::now();
    const Tensor loss = ops::cross_entropy(model_.forward(images_), labels_);
    on_phase("forward", milliseconds_since(start));
    start = Clock::now();
    autograd::backward(loss, {}, options);
    on_phase("backward", milliseconds_since(start));
    start = Clock::now();
    optimizer_->step(1e-3);
    optimizer_->clear_gradients();
    on_phase("update", milliseconds_since(start));
  }

 private:
  CachingAllocatorScope memory_;
  models::VisionTransformer& model_;
  DType precision_;
  Tensor images_, labels_;
  std::unique_ptr<optim::Optimizer> optimizer_;
};

// The operations of a forward pass without dropout.
double forward_flops(models::VisionTransformerConfig config, const TrainingSetup& setup) {
  config.img_size = setup.image_size.value_or(config.img_size);  // positions without data cannot be resampled
  RandomParams meta(0, DType::f32, Device::meta);
  const models::VisionTransformer shapes(config, ParamSource(meta));
  return models::forward_flops(shapes, {setup.batch, config.in_chans, config.img_size[0], config.img_size[1]});
}

}  // namespace

TrainingTimes time_training(models::VisionTransformer& model, const TrainingSetup& setup, double seconds) {
  const ComputeTeam team(setup.threads);
  Training training(model, setup);
  const auto ignore_phase = [](const char*, double) {};
  for (int i = 0; i < 3; ++i) training.step(ignore_phase);
  TrainingTimes times;
  times.flops = 3 * forward_flops(model.config(), setup);
  const auto end = Clock::now() + std::chrono::duration<double>(seconds);
  while (Clock::now() < end || times.milliseconds.size() < 5) {
    const auto start = Clock::now();
    training.step(ignore_phase);
    times.milliseconds.push_back(milliseconds_since(start));
  }
  std::sort(times.milliseconds.begin(), times.milliseconds.end());
  return times;
}

void print_training_profile(models::VisionTransformer& model, const TrainingSetup& setup) {
  const ComputeTeam team(setup.threads);
  Training training(model, setup);
  std::map<std::string, double> best;
  for (int round = 0; round < 8; ++round) {
    std::map<std::string, double> times;
    const auto on_phase = [&](const char* phase, double ms) { times[phase] += ms; };
    training.step(on_phase, {.on_node = [&](const std::string& name, double seconds) {
                    times["backward of " + name] += 1e3 * seconds;
                  }});
    for (const auto& [name, ms] : times) {
      const auto found = best.emplace(name, ms).first;
      found->second = std::min(found->second, ms);
    }
  }
  const double total = best["forward"] + best["backward"] + best["update"];
  print_output("{:>9s} {:>6s}  phase\n", "ms", "%");
  for (const auto& [name, ms] : best) print_output("{:9.3f} {:6.2f}  {}\n", ms, 100 * ms / total, name);
  print_output("{:9.3f} {:6.2f}  total\n", total, 100.0);
}

}  // namespace vitrail::app
