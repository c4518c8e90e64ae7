// SPDX-License-Identifier: Apache-2.0
#include "vitrail/c_api/handles_internal.h"

namespace vitrail::c_api {

vitrail_tensor* new_tensor(const Tensor& values) { return new vitrail_tensor{values.to(DType::f32).contiguous()}; }

}  // namespace vitrail::c_api

extern "C" {

const float* vitrail_tensor_data(const vitrail_tensor* tensor) { return tensor->values.data<float>(); }
int vitrail_tensor_rank(const vitrail_tensor* tensor) { return tensor->values.rank(); }
const int64_t* vitrail_tensor_shape(const vitrail_tensor* tensor) { return tensor->values.shape().begin(); }
void vitrail_tensor_free(vitrail_tensor* tensor) { delete tensor; }

}  // extern "C"
