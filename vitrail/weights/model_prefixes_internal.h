// SPDX-License-Identifier: Apache-2.0
#pragma once
// Finds the tensors of a model among a checkpoint's names.  Wrappers put prefixes in front of them ("net.",
// "model_ema.module."), and other tensors may be beside them ("criterion.weight").
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "vitrail/tensor/tensor.h"

namespace vitrail::weights {

// The prefixes, with their final "." or "/", under which the keys of a built-in family are found, in the order of
// use_order() and else of `names`, without those of is_optimizer_state().  Only "" if they are found without a prefix;
// empty if no family is found.
std::vector<std::string> find_model_prefixes(const std::vector<std::string>& names);

// The order in which one of several models of a checkpoint is chosen, by its key or prefix: averaged weights (0), then
// what is called the model, other models, teachers and momentum encoders, students.  Of two alike, "last", "initial"
// and "pretrained" come behind.
int use_order(std::string_view key);

// Whether a key is one of averaged weights ("ema", "swa_model").
bool is_average(std::string_view key);

// The number of averaged models, beside the weights of torch.optim.swa_utils and Lightning.  With 0 these weights are
// those from before the training.
inline constexpr std::string_view kAveragedCount = "n_averaged";
// Whether a tensor of one element is the integer 0; not if it cannot be read.
bool is_zero_count(const std::function<Tensor()>& read);
// The end of a warning about a choice of weights; "" for none.
std::string empty_averages_text(const std::vector<std::string>& averages);

// Whether a key or prefix is that of gradients or an optimiser's moments ("exp_avg.", "opt/0/mu/"), which have the
// names and shapes of the weights.
bool is_optimizer_state(std::string_view key);

// "\"a\", \"b\"": for messages; at most `max_count`, then "…".
std::string quoted_list(const std::vector<std::string>& words, size_t max_count = 4);

}  // namespace vitrail::weights
