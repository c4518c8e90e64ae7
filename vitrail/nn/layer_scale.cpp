// SPDX-License-Identifier: Apache-2.0
#include "vitrail/nn/layer_scale.h"

#include "vitrail/nn/init.h"

namespace vitrail::nn {

LayerScale::LayerScale(int64_t dim, double init_value, const ParamSource& params)
    : Module(params.path()), gamma_(params.get("gamma", {dim}, init::constant(init_value))) {}

}  // namespace vitrail::nn
