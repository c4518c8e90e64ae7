// SPDX-License-Identifier: Apache-2.0
#pragma once
// Which parameters are trained, and how strongly each: weight decay, layer-wise rates, frozen parts.
#include <cstdint>
#include <string>
#include <vector>

#include "vitrail/nn/module.h"

namespace vitrail::optim {

// One tensor that an optimiser updates in place.  Its gradient is autograd::grad_of(tensor).
struct Parameter {
  std::string name;
  Tensor tensor;            // f32 or f64, contiguous
  double weight_decay = 0;  // per step: decoupled (AdamW, LAMB's and Lion's own forms) or added to the gradient (SGD)
  double rate_scale = 1;    // multiplies the schedule's rate
};

struct GroupOptions {
  double weight_decay = 0.05;
  // The rate of layer i of d is scaled by layer_decay^(d − i) (Bao et al. 2022, BEiT): 1 leaves all alike.
  double layer_decay = 1;
  std::vector<std::string> no_decay;  // patterns of further names without decay
  std::vector<std::string> frozen;    // patterns of names that are not trained
};

// A pattern is a glob over the whole name ("blocks.0.*"; * crosses dots, ? is one character), or a regular expression
// (ECMAScript, whole name) after "regex:".  An expression that does not parse is an Error.
bool matches(const std::string& pattern, const std::string& name);

// Whether weight decay leaves a parameter alone, by timm's rule: vectors and scalars (biases, norms, LayerScale), names
// that end in ".bias", positions, and the CLS, register and distillation tokens.
bool spared_from_decay(const std::string& name, const Shape& shape);

// The layer a parameter counts to, of depth + 2, as timm groups a ViT: 0 for the embeddings, i + 1 for block i, depth
// for the final norm (with the last block), depth + 1 for what follows (fc_norm, heads).
int64_t layer_of(const std::string& name, int64_t depth);

// The trained parameters with their decay and rate scale; frozen ones are left out.  The depth is read from the names
// ("blocks.N.").  Throws Error when a pattern matches no name, when nothing is left, or on an option out of range.
std::vector<Parameter> parameter_groups(const std::vector<nn::NamedTensor>& parameters, const GroupOptions& options);

// The same for a module, whose parameters become leaves that want a gradient, the frozen ones leaves that want none.
std::vector<Parameter> parameter_groups(nn::Module& module, const GroupOptions& options);

}  // namespace vitrail::optim
