// SPDX-License-Identifier: Apache-2.0
#pragma once
// Optimisers: AdamW, SGD, LAMB, Lion.  One parallel pass updates all parameters, in chunks that are fixed when the
// optimiser is made, so that neither threads nor the order of work show in the result.
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "vitrail/optim/parameter_groups.h"

namespace vitrail::optim {

struct OptimizerOptions {
  // adamw: Loshchilov & Hutter 2019, as torch.optim.AdamW.  sgd: Sutskever et al. 2013, as torch.optim.SGD.
  // lamb: You et al. 2020, as timm.optim.Lamb without its own clipping.  lion: Chen et al. 2023, as timm.optim.Lion.
  std::string kind = "adamw";
  double beta1 = 0.9;           // adamw, lamb, lion
  std::optional<double> beta2;  // adamw and lamb: 0.999; lion: 0.99
  std::optional<double> eps;    // adamw: 1e-8; lamb: 1e-6
  double momentum = 0.9;        // sgd
  bool nesterov = false;        // sgd
};

// A part of one parameter: what a thread updates in one go.
struct Chunk {
  size_t parameter;
  int64_t first, count;  // elements
};

class Optimizer {
 public:
  virtual ~Optimizer() = default;
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  // One update with this rate (scaled per parameter) from the gradients of the parameters, each multiplied by
  // `gradient_scale` as it is read: clipping by norm costs no pass of its own.  A parameter without a gradient stays as
  // it is.  A gradient of another shape or dtype than its parameter's is an Error.
  void step(double rate, double gradient_scale = 1);
  int64_t steps() const { return steps_; }
  const std::vector<Parameter>& parameters() const { return parameters_; }
  void clear_gradients() const;

  // What a checkpoint must hold: "step" (i64, no axes) and a tensor per buffer and parameter, such as "exp_avg.NAME".
  // The tensors are the optimiser's own, not copies.
  std::vector<nn::NamedTensor> state() const;
  // Copies a state in.  Names and shapes must be this optimiser's own; all differences are listed in one Error and
  // nothing is changed then.
  void load_state(const std::vector<nn::NamedTensor>& state);

 protected:
  // `buffers`: the names of the state tensors that each parameter has.
  Optimizer(std::vector<Parameter> parameters, std::vector<std::string> buffers);

  // One step's update of all parameters that have a gradient; gradients()[i] is undefined for those without.
  virtual void update(double rate, double gradient_scale) = 0;
  const std::vector<Tensor>& gradients() const { return gradients_; }
  const Tensor& buffer(size_t which, size_t parameter) const { return buffers_[which][parameter]; }
  const std::vector<Chunk>& chunks() const { return chunks_; }
  // body(chunk number, chunk) for every chunk whose parameter has a gradient, on all threads.
  void for_each_chunk(const std::function<void(size_t, const Chunk&)>& body) const;

 private:
  void collect_gradients();
  std::vector<Parameter> parameters_;
  std::vector<std::string> buffer_names_;
  std::vector<std::vector<Tensor>> buffers_;  // [buffer][parameter]
  std::vector<Chunk> chunks_;
  std::vector<Tensor> gradients_;  // during a step
  int64_t steps_ = 0;
};

// Throws Error for an unknown kind (the known ones are listed), an option out of range, and parameters that are not
// contiguous f32 or f64 tensors with names of their own.
std::unique_ptr<Optimizer> make_optimizer(const OptimizerOptions& options, std::vector<Parameter> parameters);

}  // namespace vitrail::optim
