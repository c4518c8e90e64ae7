// SPDX-License-Identifier: Apache-2.0
#include <stdexcept>

#include "vitrail/kernels/gemm/amx_microkernel-inl.h"

namespace vitrail::kernels {

#if defined(__x86_64__)
namespace {

void int8_dot(const DotMicrokernelArgs& args) { amx_dot<Int8Tiles<AmxTiles>>(args, vnni_microkernel()); }
void bf16_dot(const DotMicrokernelArgs& args) { amx_dot<Bf16Tiles<AmxTiles>>(args, bf16_microkernel()); }

}  // namespace

DotMicrokernel amx_int8_microkernel() { return &int8_dot; }
DotMicrokernel amx_bf16_microkernel() { return &bf16_dot; }
#else
DotMicrokernel amx_int8_microkernel() { throw std::logic_error("AMX exists on x86-64 only"); }
DotMicrokernel amx_bf16_microkernel() { throw std::logic_error("AMX exists on x86-64 only"); }
#endif

}  // namespace vitrail::kernels
