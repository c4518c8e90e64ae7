// SPDX-License-Identifier: Apache-2.0
#pragma once
// Parameter groups: weight decay, layer-wise learning rate decay and frozen parameters.
#include <cstdint>
#include <string>
#include <vector>

#include "vitrail/nn/module.h"

namespace vitrail::optim {

// A tensor that an optimiser updates in place.  Its gradient is autograd::grad_of(tensor).
struct Parameter {
  std::string name{};
  Tensor tensor;            // f32 or f64, contiguous
  double weight_decay = 0;  // decoupled (AdamW, LAMB, Lion), or added to the gradient (SGD)
  double rate_scale = 1;    // multiplies the learning rate
};

// The learning rate of parameters whose names match a pattern is multiplied by the factor.
struct RateScale {
  std::string pattern;
  double factor = 1;
};

struct GroupOptions {
  double weight_decay = 0.05;
  // Layer-wise learning rate decay (Bao et al. 2022, BEiT): the rate of layer i of d is scaled by layer_decay^(d − i).
  // 1: off.
  double layer_decay = 1;
  std::vector<std::string> no_decay{};   // name patterns of more parameters without weight decay
  std::vector<std::string> frozen{};     // name patterns of parameters that are not trained
  std::vector<RateScale> rate_scales{};  // the first pattern that matches counts, beside layer_decay
};

// Returns whether a pattern matches a complete parameter name.  A pattern is a glob ("blocks.0.*", where * also matches
// dots and ? is one character) or, after "regex:", an ECMAScript regular expression.  Throws Error for an invalid
// expression.
bool matches(const std::string& pattern, const std::string& name);

// Returns whether a parameter has no weight decay by timm's rule: vectors and scalars (biases, norms, LayerScale),
// names that end in ".bias", position embeddings, rotary frequencies, and the CLS, register and distillation
// tokens.
bool excluded_from_decay(const std::string& name, const Shape& shape);

// Returns the layer index in [0, depth + 1] of a parameter of a ViT, as timm groups them: 0 for the embeddings, i + 1
// for block i, depth for the final norm (with the last block), depth + 1 for the layers after it (fc_norm, heads).  In
// Segment Anything, the ViT is "image_encoder.…", and its neck, the prompt encoder and the mask decoder are after it.
int64_t layer_of(const std::string& parameter, int64_t depth);

// Returns the trained parameters, without the frozen ones, with their weight decay and rate scale.  The depth follows
// from the names ("blocks.N.").  Throws Error if a pattern matches no name, if no parameter is left, or for an option
// out of range.
std::vector<Parameter> parameter_groups(const std::vector<nn::NamedTensor>& parameters, const GroupOptions& options);

// The same for the parameters of a module.  Also sets requires_grad: true for the trained, false for the frozen ones.
std::vector<Parameter> parameter_groups(nn::Module& module, const GroupOptions& options);

}  // namespace vitrail::optim
