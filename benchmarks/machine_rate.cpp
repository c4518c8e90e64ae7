// SPDX-License-Identifier: Apache-2.0
// machine_rate ARCHITECTURE BATCH [PRECISION [SECONDS]]: prints the rate in GFLOP/s of oneDNN's matmul with packed
// weights over all linear layers of a forward pass.  The "GEMM share" of benchmarks/peers.py refers to it. PRECISION:
// fp32, half or bf16 (bf16 × bf16), int8 (u8 × s8); the output is fp32.
#include <dnnl.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <tuple>

#include "vitrail/base/error.h"
#include "vitrail/models/registry.h"
#include "vitrail/models/vision_transformer.h"
#include "vitrail/ops/recorder.h"

namespace {

using namespace vitrail;
using Clock = std::chrono::steady_clock;
using DataType = dnnl::memory::data_type;
using GemmShape = std::tuple<int64_t, int64_t, int64_t>;  // rows, in, out

double operations_of(const GemmShape& shape) {
  const auto [rows, in, out] = shape;
  return 2.0 * static_cast<double>(rows) * static_cast<double>(in) * static_cast<double>(out);
}

// The shapes of the linear layers of a forward pass, with their counts.
std::map<GemmShape, int> gemm_shapes_of(const models::VisionTransformerConfig& config, int64_t batch) {
  RandomParams meta(0, DType::f32, Device::meta);
  const models::VisionTransformer model(config, ParamSource(meta));
  const ops::Recorder recorder;
  model.forward(
      Tensor::empty({batch, config.in_chans, config.img_size[0], config.img_size[1]}, DType::f32, Device::meta));
  std::map<GemmShape, int> shapes;
  for (const ops::RecordedOperation& operation : recorder.operations()) {
    if (operation.kind() != ops::OpKind::linear) continue;
    const Tensor &x = operation.inputs[0], &weight = operation.inputs[1];
    ++shapes[{x.numel() / x.size(-1), weight.size(1), weight.size(0)}];
  }
  return shapes;
}

// The minimum time of one GEMM in runs of `seconds`, in seconds.
double time_of(const GemmShape& shape, DataType left, DataType right, double seconds) {
  const auto [rows, in, out] = shape;
  dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  dnnl::stream stream(engine);
  const dnnl::memory::desc a({rows, in}, left, dnnl::memory::format_tag::ab),
      w({in, out}, right, dnnl::memory::format_tag::any), c({rows, out}, DataType::f32, dnnl::memory::format_tag::ab);
#if DNNL_VERSION_MAJOR >= 3
  const dnnl::matmul::primitive_desc chosen(engine, a, w, c);
#else
  const dnnl::matmul::primitive_desc chosen(dnnl::matmul::desc(a, w, c), engine);
#endif
  const dnnl::matmul matmul(chosen);
  dnnl::memory x(a, engine), weight(chosen.weights_desc(), engine), y(c, engine);
  const std::unordered_map<int, dnnl::memory> arguments{
      {DNNL_ARG_SRC, x}, {DNNL_ARG_WEIGHTS, weight}, {DNNL_ARG_DST, y}};
  double best = 1e9;
  const auto end = Clock::now() + std::chrono::duration<double>(seconds);
  for (int run = 0; run < 8 || Clock::now() < end; ++run) {
    const auto start = Clock::now();
    matmul.execute(stream, arguments);
    stream.wait();
    best = std::min(best, std::chrono::duration<double>(Clock::now() - start).count());
  }
  return best;
}

double rate(const std::string& architecture, int64_t batch, const std::string& precision, double seconds) {
  const models::Architecture* const row = models::find_architecture(architecture);
  if (!row) throw Error("machine_rate", "a registered architecture (see vitrail models)", architecture);
  const std::map<std::string, std::pair<DataType, DataType>> types{{"fp32", {DataType::f32, DataType::f32}},
                                                                   {"half", {DataType::bf16, DataType::bf16}},
                                                                   {"bf16", {DataType::bf16, DataType::bf16}},
                                                                   {"int8", {DataType::u8, DataType::s8}}};
  const auto type = types.find(precision);
  if (type == types.end()) throw Error("machine_rate", "fp32, half (bf16) or int8", precision);
  const std::map<GemmShape, int> shapes = gemm_shapes_of(row->config, batch);
  const double seconds_per_shape = seconds / static_cast<double>(shapes.size());
  double operations = 0, time = 0;
  for (const auto& [shape, count] : shapes) {
    operations += count * operations_of(shape);
    time += count * time_of(shape, type->second.first, type->second.second, seconds_per_shape);
  }
  return operations / time / 1e9;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3 || argc > 5) {
    std::fprintf(stderr, "usage: machine_rate ARCHITECTURE BATCH [PRECISION [SECONDS]]\n");
    return 2;
  }
  try {
    std::printf("{\"gflop_per_s\": %.1f}\n",
                rate(argv[1], std::atoll(argv[2]), argc > 3 ? argv[3] : "fp32", argc > 4 ? std::atof(argv[4]) : 2));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "machine_rate: error: %s\n", error.what());
    return 1;
  }
  return 0;
}
