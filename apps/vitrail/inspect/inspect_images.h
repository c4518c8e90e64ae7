// SPDX-License-Identifier: Apache-2.0
#pragma once
// `vitrail inspect` of a Vision Transformer.
#include "apps/vitrail/inspect/inspect_values.h"

namespace vitrail::app {

struct NamedModel;

std::unique_ptr<InspectedModel> inspect_image_model(const NamedModel& model, const ModelOptions& options,
                                                    const ValueOptions& values);

}  // namespace vitrail::app
