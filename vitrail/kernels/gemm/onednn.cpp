// SPDX-License-Identifier: Apache-2.0
#include "vitrail/kernels/gemm/onednn_internal.h"

#if VITRAIL_ONEDNN
#include <omp.h>

#include <dnnl.hpp>
#include <map>
#include <mutex>
#include <string>
#include <unordered_map>

#include "vitrail/base/error.h"
#include "vitrail/base/parallel.h"
#include "vitrail/base/signal_block_internal.h"
#include "vitrail/kernels/isa/thread_scratch_internal.h"

namespace vitrail::kernels::onednn {
namespace {

using dnnl::memory;

constexpr auto kFloat = memory::data_type::f32;

// While it is alive, oneDNN computes on `threads` threads, the calling thread included.
class OpenMpThreads {
 public:
  explicit OpenMpThreads(int threads) : before_(omp_get_max_threads()) { omp_set_num_threads(threads); }
  ~OpenMpThreads() { omp_set_num_threads(before_); }
  OpenMpThreads(const OpenMpThreads&) = delete;
  OpenMpThreads& operator=(const OpenMpThreads&) = delete;

 private:
  int before_;
};

dnnl_cpu_isa_t limit_for(Isa isa) {
  const FeatureSet features = features_of(isa);
  if (features.has(Feature::amx)) return dnnl_cpu_isa_avx512_core_amx;
  if (features.has(Feature::avx512_bf16)) return dnnl_cpu_isa_avx512_core_bf16;
  if (features.has(Feature::avx512_vnni)) return dnnl_cpu_isa_avx512_core_vnni;
  if (features.has(Feature::avx512)) return dnnl_cpu_isa_avx512_core;
  if (features.has(Feature::avx2)) return dnnl_cpu_isa_avx2;
  return dnnl_cpu_isa_sse41;
}

// To be called before any use of oneDNN, which takes a limit only before its first.
void limit_isa() {
  static const bool done = [] {
    if (isa_is_requested()) dnnl_set_max_cpu_isa(limit_for(active_isa()));
    return true;
  }();
  static_cast<void>(done);
}

dnnl::engine& cpu() {
  limit_isa();
  static dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  return engine;
}

float* scratch_for(const memory::desc& scratchpad) {
  return thread_scratch(static_cast<int64_t>(scratchpad.get_size() / sizeof(float) + 1));
}

memory::desc matrix(int64_t rows, int64_t columns, int64_t ld, memory::data_type type = kFloat) {
  return {{rows, columns}, type, {ld, 1}};
}

// b = a · w + bias (an empty descriptor: none), with a scratchpad that the caller provides.
dnnl::matmul::primitive_desc describe(const memory::desc& a, const memory::desc& w, const memory::desc& bias,
                                      const memory::desc& b) {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
#if DNNL_VERSION_MAJOR >= 3
  return {cpu(), a, w, bias, b, attributes};
#else
  return {{a, w, bias, b}, attributes, cpu()};
#endif
}

// x [rows, in] · weights + bias → y [rows, out], contiguous
dnnl::matmul::primitive_desc describe(int64_t rows, int64_t in, int64_t out, int64_t ldx, bool bias,
                                      const memory::desc& weights) {
  return describe(matrix(rows, in, ldx), weights, bias ? matrix(1, out, out) : memory::desc(), matrix(rows, out, out));
}

}  // namespace

bool available() { return true; }

Isa effective_isa() {
  limit_isa();
  // A value has one bit per feature, so that an instruction set unknown here contains the bits of those it extends.
  const int isa = dnnl_get_effective_cpu_isa();
  const auto has = [isa](dnnl_cpu_isa_t part) { return (isa & part) == part; };
  if (has(dnnl_cpu_isa_avx512_core_amx)) return Isa::avx512_amx;
  if (has(dnnl_cpu_isa_avx512_core_bf16)) return Isa::avx512_bf16;
  if (has(dnnl_cpu_isa_avx512_core_vnni)) return Isa::avx512_vnni;
  if (has(dnnl_cpu_isa_avx512_core)) return Isa::avx512;
  return has(dnnl_cpu_isa_avx2) ? Isa::avx2 : Isa::sse4;
}

void sgemm(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k, const float* a, int64_t lda,
           const float* b, int64_t ldb, bool accumulate, float* c, int64_t ldc) {
  limit_isa();
  const OpenMpThreads one(1);
  // For long sums oneDNN's generated code uses a small heap buffer as its stack.  A signal handler would run on it and
  // overwrite the memory before it.
  const SignalBlock signals;
  const dnnl_status_t status = dnnl_sgemm(transpose_a ? 'T' : 'N', transpose_b ? 'T' : 'N', m, n, k, 1.0f, a, lda, b,
                                          ldb, accumulate ? 1.0f : 0.0f, c, ldc);
  if (status == dnnl_out_of_memory) throw std::bad_alloc();
  if (status != dnnl_success) throw std::runtime_error(str("oneDNN: sgemm failed with status ", status));
}

namespace {

// Row-major [rows, columns], or the transpose of such a matrix [columns, rows].
memory::desc matrix_or_transpose(bool transposed, int64_t rows, int64_t columns, int64_t ld, memory::data_type type) {
  return {{rows, columns}, type, transposed ? memory::dims{1, ld} : memory::dims{ld, 1}};
}

// What a matmul primitive is specific to.
struct Bf16Shape {
  bool transpose_a, transpose_b, bias;
  DType c_type;
  int64_t m, n, k, lda, ldb, ldc;
  auto operator<=>(const Bf16Shape&) const = default;
};

struct Bf16Matmul {
  memory::desc a, b, bias, c, scratchpad;
  dnnl::matmul matmul;
};

std::unique_ptr<Bf16Matmul> make_bf16_matmul(const Bf16Shape& s) {
  const auto type = memory::data_type::bf16;
  const memory::desc a = matrix_or_transpose(s.transpose_a, s.m, s.k, s.lda, type),
                     b = matrix_or_transpose(s.transpose_b, s.k, s.n, s.ldb, type),
                     bias = s.bias ? matrix(1, s.n, s.n) : memory::desc(),
                     c = matrix(s.m, s.n, s.ldc, s.c_type == DType::bf16 ? type : kFloat);
  const auto described = describe(a, b, bias, c);
  return std::unique_ptr<Bf16Matmul>(
      new Bf16Matmul{a, b, bias, c, described.scratchpad_desc(), dnnl::matmul(described)});
}

// Entries are never removed, so the reference stays valid.  Training has a handful of shapes.
const Bf16Matmul& bf16_matmul(const Bf16Shape& shape) {
  static std::mutex guard;
  static std::map<Bf16Shape, std::unique_ptr<Bf16Matmul>> made;
  std::lock_guard lock(guard);
  std::unique_ptr<Bf16Matmul>& entry = made[shape];
  if (!entry) entry = make_bf16_matmul(shape);
  return *entry;
}

}  // namespace

void matmul_bf16(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k, const BFloat16* a, int64_t lda,
                 const BFloat16* b, int64_t ldb, const float* bias, DType c_type, void* c, int64_t ldc) {
  const OpenMpThreads one(1);
  const Bf16Matmul& cached = bf16_matmul({transpose_a, transpose_b, bias != nullptr, c_type, m, n, k, lda, ldb, ldc});
  // oneDNN takes no const pointers, but only reads these.
  std::unordered_map<int, memory> arguments{
      {DNNL_ARG_SRC, memory(cached.a, cpu(), const_cast<BFloat16*>(a))},
      {DNNL_ARG_WEIGHTS, memory(cached.b, cpu(), const_cast<BFloat16*>(b))},
      {DNNL_ARG_DST, memory(cached.c, cpu(), c)},
      {DNNL_ARG_SCRATCHPAD, memory(cached.scratchpad, cpu(), scratch_for(cached.scratchpad))}};
  if (bias) arguments.emplace(DNNL_ARG_BIAS, memory(cached.bias, cpu(), const_cast<float*>(bias)));
  dnnl::stream stream(cpu());
  cached.matmul.execute(stream, arguments);
  stream.wait();
}

struct PackedMatmul::Impl {
  struct Primitive {
    memory::desc x, y, scratchpad;
    dnnl::matmul matmul;
  };
  using Key = std::pair<int64_t, int64_t>;  // rows, ldx

  int64_t out, in;
  memory weights, bias;
  bool fast = true;
  mutable std::mutex guard;
  mutable std::map<Key, std::unique_ptr<Primitive>> primitives;

  dnnl::matmul::primitive_desc description(int64_t rows, int64_t ldx) const {
    return describe(rows, in, out, ldx, static_cast<bool>(bias), weights.get_desc());
  }

  // Entries are never removed, so the reference stays valid.  A program has a handful of row counts.
  const Primitive& primitive(int64_t rows, int64_t ldx) const {
    const std::lock_guard lock(guard);
    std::unique_ptr<Primitive>& entry = primitives[{rows, ldx}];
    if (!entry) {
      const auto described = description(rows, ldx);
      entry.reset(new Primitive{matrix(rows, in, ldx), matrix(rows, out, out), described.scratchpad_desc(),
                                dnnl::matmul(described)});
    }
    return *entry;
  }
};

PackedMatmul::PackedMatmul(const float* weight, const float* bias, int64_t out, int64_t in) : impl_(new Impl) {
  const OpenMpThreads one(1);
  impl_->out = out;
  impl_->in = in;
  const memory::desc any({in, out}, kFloat, memory::format_tag::any);
  const memory::desc layout = describe(kTypicalRows, in, out, in, bias != nullptr, any).weights_desc();
  impl_->weights = memory(layout, cpu());
  // oneDNN takes no const pointer, but only reads this one.
  memory source({{in, out}, kFloat, {1, in}}, cpu(), const_cast<float*>(weight));
  dnnl::stream stream(cpu());
  dnnl::reorder(source, impl_->weights).execute(stream, source, impl_->weights);
  stream.wait();
  if (bias) {
    impl_->bias = memory(matrix(1, out, out), cpu());
    std::copy(bias, bias + out, static_cast<float*>(impl_->bias.get_data_handle()));
  }
  for (int64_t rows : {int64_t{1}, kTypicalRows, 8 * kTypicalRows}) {
    const std::string implementation = impl_->description(rows, in).impl_info_str();
    impl_->fast = impl_->fast && implementation.find("ref") == std::string::npos;
  }
}
PackedMatmul::~PackedMatmul() = default;

PackedMatmul::PackedMatmul(PackedMatmul&&) noexcept = default;

bool PackedMatmul::fast() const { return impl_->fast; }

void PackedMatmul::run(const float* x, int64_t ldx, float* y, int64_t rows) const {
  const OpenMpThreads one(1);
  const Impl::Primitive& primitive = impl_->primitive(rows, ldx);
  float* const scratchpad = scratch_for(primitive.scratchpad);
  std::unordered_map<int, memory> arguments{{DNNL_ARG_SRC, memory(primitive.x, cpu(), const_cast<float*>(x))},
                                            {DNNL_ARG_WEIGHTS, impl_->weights},
                                            {DNNL_ARG_DST, memory(primitive.y, cpu(), y)},
                                            {DNNL_ARG_SCRATCHPAD, memory(primitive.scratchpad, cpu(), scratchpad)}};
  if (impl_->bias) arguments.emplace(DNNL_ARG_BIAS, impl_->bias);
  dnnl::stream stream(cpu());
  primitive.matmul.execute(stream, arguments);
  stream.wait();
}

void PackedMatmul::prepare(int64_t rows, int64_t ldx) const {
  const OpenMpThreads one(1);
  impl_->primitive(rows, ldx);
}

size_t PackedMatmul::packed_bytes() const {
  return impl_->weights.get_desc().get_size() + static_cast<size_t>(impl_->bias ? impl_->out : 0) * sizeof(float);
}

}  // namespace vitrail::kernels::onednn
#endif
