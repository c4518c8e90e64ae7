// SPDX-License-Identifier: Apache-2.0
#include "examples/extending/rms_norm_layer.h"

#include "examples/extending/rms_norm.h"
#include "vitrail/base/error.h"
#include "vitrail/nn/init.h"
#include "vitrail/nn/trace.h"

namespace extending {

using namespace vitrail;

// The constructor asks for the parameter.  A ParamSource reads it from a checkpoint or initialises it.
RmsNorm::RmsNorm(int64_t features, double eps, const ParamSource& params)
    : Module(params.path()), weight_(params.get("weight", {features}, nn::init::ones())), eps_(eps) {}

Tensor RmsNorm::forward(const Tensor& x) const { return nn::traced(*this, rms_norm(x, weight_, eps_)); }

std::string RmsNorm::extra() const { return str("(", weight_.size(0), ",), eps=", nn::python_float(eps_)); }

void RmsNorm::visit(nn::Visitor& visitor) { visitor.parameter("weight", weight_); }

}  // namespace extending
