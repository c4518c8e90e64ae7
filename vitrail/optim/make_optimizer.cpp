// SPDX-License-Identifier: Apache-2.0
#include "vitrail/base/error.h"
#include "vitrail/optim/rules_internal.h"

namespace vitrail::optim {
namespace {

struct RuleRow {
  const char* kind;
  double beta2, eps;  // defaults for options that are not set
  std::unique_ptr<Optimizer> (*make)(const OptimizerOptions&, std::vector<Parameter>);
};
constexpr RuleRow kRules[]{{"adamw", 0.999, 1e-8, make_adamw},
                           {"sgd", 0, 1, make_sgd},  // uses neither
                           {"lamb", 0.999, 1e-6, make_lamb},
                           {"lion", 0.99, 1, make_lion}};

void check_fraction(const char* name, double value) {
  if (!(value >= 0 && value < 1)) throw Error("optimizer", str(name, " in [0, 1)"), str(value));
}

}  // namespace

std::unique_ptr<Optimizer> make_optimizer(const OptimizerOptions& options, std::vector<Parameter> parameters) {
  for (const RuleRow& rule : kRules) {
    if (options.kind != rule.kind) continue;
    OptimizerOptions complete = options;
    complete.beta2 = options.beta2.value_or(rule.beta2);
    complete.eps = options.eps.value_or(rule.eps);
    check_fraction("beta1", complete.beta1);
    check_fraction("beta2", *complete.beta2);
    check_fraction("momentum", complete.momentum);
    // A smaller ε would be 0 in f32, and an element whose gradients are all 0 would become 0 / 0.
    if (!(*complete.eps >= 1e-37)) throw Error("optimizer", "eps of at least 1e-37", str(*complete.eps));
    if (complete.nesterov && complete.momentum == 0) throw Error("optimizer", "momentum for nesterov", "momentum 0");
    return rule.make(complete, std::move(parameters));
  }
  throw Error("optimizer", "adamw, sgd, lamb or lion", "'" + options.kind + "'");
}

}  // namespace vitrail::optim
