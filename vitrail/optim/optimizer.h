// SPDX-License-Identifier: Apache-2.0
#pragma once
// Optimisers: AdamW, SGD, LAMB and Lion.  A step updates all parameters in one parallel pass over chunks that are fixed
// at construction, so that results do not depend on the number of threads.
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
  double beta1 = 0.9;             // adamw, lamb, lion
  std::optional<double> beta2{};  // default for adamw and lamb: 0.999; lion: 0.99
  std::optional<double> eps{};    // default for adamw: 1e-8; lamb: 1e-6
  double momentum = 0.9;          // sgd
  bool nesterov = false;          // sgd
};

// A range of elements of one parameter: the unit of work of a thread.
struct Chunk {
  size_t parameter;      // index of the parameter
  int64_t first, count;  // elements
};

class Optimizer {
 public:
  virtual ~Optimizer() = default;
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  // Updates the parameters from their gradients.  `rate`: learning rate, times each parameter's rate_scale.  Gradients
  // are multiplied by `gradient_scale` as they are read, so that clipping needs no extra pass, and each parameter's
  // weight_decay by `decay_scale`.  A parameter without a gradient is not changed.  Throws Error if a gradient has
  // another shape or dtype than its parameter.
  void step(double rate, double gradient_scale = 1, double decay_scale = 1);
  int64_t steps() const { return steps_; }  // number of steps so far
  const std::vector<Parameter>& parameters() const { return parameters_; }
  void clear_gradients() const;

  // Returns the state for a checkpoint: "step" (i64 scalar) and one tensor per buffer and parameter, such as
  // "exp_avg.NAME".  The buffers are not copied.
  std::vector<nn::NamedTensor> state() const;
  // Copies a saved state in.  Throws one Error that lists all differences of names, shapes and dtypes, and then changes
  // nothing.
  void load_state(const std::vector<nn::NamedTensor>& state);

 protected:
  // `buffers`: the names of the state tensors of each parameter.
  Optimizer(std::vector<Parameter> parameters, std::vector<std::string> buffers);

  // Updates all parameters that have a gradient.  gradients()[i] is undefined for a parameter without one.
  virtual void update(double rate, double gradient_scale) = 0;
  const std::vector<Tensor>& gradients() const { return gradients_; }
  double decay_of(const Parameter& parameter) const { return parameter.weight_decay * decay_scale_; }
  const Tensor& buffer(size_t which, size_t parameter) const { return buffers_[which][parameter]; }
  const std::vector<Chunk>& chunks() const { return chunks_; }
  // Calls body(chunk index, chunk) in parallel for every chunk whose parameter has a gradient.
  void for_each_chunk(const std::function<void(size_t, const Chunk&)>& body) const;

 private:
  void collect_gradients();

  std::vector<Parameter> parameters_;
  std::vector<std::string> buffer_names_;
  std::vector<std::vector<Tensor>> buffers_;  // [buffer][parameter]
  std::vector<Chunk> chunks_;
  std::vector<Tensor> gradients_;  // [parameter], during a step; else empty
  int64_t steps_ = 0;
  double decay_scale_ = 1;  // step() sets it
};

// Throws Error for an unknown kind (listing the known ones), an option out of range, and parameters that are not
// contiguous f32 or f64 tensors with unique names.
std::unique_ptr<Optimizer> make_optimizer(const OptimizerOptions& options, std::vector<Parameter> parameters);

}  // namespace vitrail::optim
