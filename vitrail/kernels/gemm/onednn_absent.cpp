// SPDX-License-Identifier: Apache-2.0
// Replaces onednn.cpp in a build without oneDNN (VITRAIL_ONEDNN off).
#include "vitrail/kernels/gemm/onednn_internal.h"

#if !VITRAIL_ONEDNN
#include <stdexcept>

namespace vitrail::kernels::onednn {
namespace {

[[noreturn]] void absent() { throw std::logic_error("built without oneDNN: configure with VITRAIL_ONEDNN=ON"); }

}  // namespace

bool available() { return false; }
Isa effective_isa() { absent(); }
void sgemm(bool, bool, int64_t, int64_t, int64_t, const float*, int64_t, const float*, int64_t, bool, float*, int64_t) {
  absent();
}
void matmul_bf16(bool, bool, int64_t, int64_t, int64_t, const BFloat16*, int64_t, const BFloat16*, int64_t,
                 const float*, DType, void*, int64_t) {
  absent();
}

struct PackedMatmul::Impl {};
PackedMatmul::PackedMatmul(const float*, const float*, int64_t, int64_t) { absent(); }
PackedMatmul::~PackedMatmul() = default;
PackedMatmul::PackedMatmul(PackedMatmul&&) noexcept = default;
bool PackedMatmul::fast() const { absent(); }
void PackedMatmul::run(const float*, int64_t, float*, int64_t) const { absent(); }
void PackedMatmul::prepare(int64_t, int64_t) const { absent(); }
size_t PackedMatmul::packed_bytes() const { absent(); }

}  // namespace vitrail::kernels::onednn
#endif
