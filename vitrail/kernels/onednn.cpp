#include "vitrail/kernels/onednn.h"

#include <stdexcept>
#include <string>

#if VITRAIL_ONEDNN

#include <dnnl.h>

namespace vitrail::kernels::onednn {
namespace {

void check(dnnl_status_t status, const char* what) {
  if (status == dnnl_out_of_memory) throw std::bad_alloc();
  if (status != dnnl_success)
    throw std::runtime_error(std::string("oneDNN: ") + what + " failed with status " + std::to_string(status));
}

}  // namespace

bool available() { return true; }

bool cap_isa(Isa isa) {
  dnnl_cpu_isa_t cap = dnnl_cpu_isa_sse41;
  if (isa == Isa::avx2) cap = dnnl_cpu_isa_avx2;
  if (isa == Isa::avx512) cap = dnnl_cpu_isa_avx512_core;
  if (isa == Isa::avx512_vnni) cap = dnnl_cpu_isa_avx512_core_vnni;
  if (isa == Isa::avx512_bf16) cap = dnnl_cpu_isa_avx512_core_bf16;
  return dnnl_set_max_cpu_isa(cap) == dnnl_success;
}

Isa effective_isa() {
  switch (dnnl_get_effective_cpu_isa()) {
    case dnnl_cpu_isa_sse41:
    case dnnl_cpu_isa_avx:
      return Isa::sse4;
    case dnnl_cpu_isa_avx2:
    case dnnl_cpu_isa_avx2_vnni:
      return Isa::avx2;
    case dnnl_cpu_isa_avx512_core:
      return Isa::avx512;
    case dnnl_cpu_isa_avx512_core_vnni:
      return Isa::avx512_vnni;
    default:
      return Isa::avx512_bf16;
  }
}

void sgemm(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k, const float* a, int64_t lda,
           const float* b, int64_t ldb, bool accumulate, float* c, int64_t ldc) {
  check(dnnl_sgemm(transpose_a ? 'T' : 'N', transpose_b ? 'T' : 'N', m, n, k, 1.0f, a, lda, b, ldb,
                   accumulate ? 1.0f : 0.0f, c, ldc),
        "sgemm");
}

}  // namespace vitrail::kernels::onednn

#else

namespace vitrail::kernels::onednn {

bool available() { return false; }
bool cap_isa(Isa) { return true; }
Isa effective_isa() { throw std::logic_error("built without oneDNN (VITRAIL_ONEDNN)"); }
void sgemm(bool, bool, int64_t, int64_t, int64_t, const float*, int64_t, const float*, int64_t, bool, float*, int64_t) {
  throw std::logic_error("built without oneDNN (VITRAIL_ONEDNN)");
}

}  // namespace vitrail::kernels::onednn

#endif
