// SPDX-License-Identifier: Apache-2.0
// A kernel that returns the name of the target it was compiled for, dispatched like every other kernel.
#include "vitrail/kernels/isa/isa.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "vitrail/kernels/isa/dispatched_target.cpp"
#include "vitrail/kernels/isa/highway-inl.h"

HWY_BEFORE_NAMESPACE();
namespace vitrail::kernels {
namespace HWY_NAMESPACE {

const char* target_name() { return hwy::TargetName(HWY_TARGET); }

}  // namespace HWY_NAMESPACE
}  // namespace vitrail::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace vitrail::kernels {
namespace {

const char* scalar_target_name() { return "scalar"; }

VITRAIL_EXPORT(target_name, scalar_target_name);

}  // namespace

std::string dispatched_target() { return VITRAIL_DISPATCH(target_name)(); }

}  // namespace vitrail::kernels
#endif
