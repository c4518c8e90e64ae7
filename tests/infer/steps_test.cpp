// SPDX-License-Identifier: Apache-2.0
// The steps that each operation becomes: their text, operations, bytes and kernels.
#include <gtest/gtest.h>

#include "tests/infer/meta.h"
#include "tests/support/messages.h"
#include "vitrail/infer/buffers_internal.h"
#include "vitrail/infer/compile_internal.h"
#include "vitrail/infer/step_kernel_internal.h"
#include "vitrail/kernels/attention/attention.h"
#include "vitrail/kernels/isa/isa.h"
#include "vitrail/ops/activation.h"
#include "vitrail/ops/attention.h"
#include "vitrail/ops/elementwise.h"
#include "vitrail/ops/embedding.h"
#include "vitrail/ops/layer_norm.h"
#include "vitrail/ops/linear.h"
#include "vitrail/ops/patchify.h"
#include "vitrail/ops/residual_add.h"
#include "vitrail/ops/rms_norm.h"
#include "vitrail/ops/rotary.h"
#include "vitrail/ops/token_merging.h"
#include "vitrail/ops/tokens.h"

namespace vitrail::infer {
namespace {

using kernels::Activation;
using kernels::Arithmetic;
using ops::OpKind;

// The program of a function of inputs with these shapes.
template <class Compute>
Program program_of(const std::vector<Tensor>& inputs, const Compute& compute,
                   kernels::Precision attention = kernels::Precision::fp32) {
  const ops::Recorder recorder;
  const std::vector<Tensor> outputs = compute(inputs);
  PackedWeights weights;
  return compile(recorder, inputs, outputs, weights, {.attention = attention});
}

struct StepCase {
  std::vector<Tensor> inputs;
  std::vector<Tensor> (*compute)(const std::vector<Tensor>& in);
  std::string text;
  double flops, floats;  // floats: of all operands
  std::string kernel;
  bool is_loop = false;
};

void expect_last_step(const StepCase& each) {
  const Program program = program_of(each.inputs, each.compute);
  ASSERT_FALSE(program.steps().empty()) << each.text;
  const Step& step = program.steps().back();
  EXPECT_EQ(step.text, each.text);
  EXPECT_EQ(step.flops, each.flops) << each.text;
  EXPECT_EQ(step.bytes, 4 * each.floats) << each.text;
  EXPECT_EQ(step.kernel.name, each.kernel) << each.text;
  EXPECT_EQ(step.kernel.isa, each.is_loop ? "scalar" : kernels::name_of(kernels::active_isa())) << each.text;
  EXPECT_EQ(step.kernel.arithmetic, Arithmetic::fp32) << each.text;
}

Tensor ones(const Shape& shape) { return Tensor::full(shape, 1); }
double packed_floats(int64_t out, int64_t in) {
  const Tensor weight = ones({out, in});
  return static_cast<double>(kernels::PackedLinear(weight.data<float>(), nullptr, out, in).packed_bytes()) / 4;
}

using Results = std::vector<Tensor>;
using In = const std::vector<Tensor>&;

TEST(Steps, StateWhatTheyReadWriteAndCompute) {
  const Tensor x = meta({2, 3, 4}), y = meta({2, 3, 4});
  for (const StepCase& each : std::vector<StepCase>{
           {{x},
            [](In in) -> Results {
              return {ops::linear(in[0], ones({5, 4}), ones({5}))};
            },
            "linear [5, 4] input [2, 3, 4] → %0 [2, 3, 5]",
            240,
            24 + 5 + 30 + packed_floats(5, 4),
            "fp32 GEMM"},
           {{x},
            [](In in) -> Results {
              return {ops::linear(in[0], ones({5, 4}), {}, Activation::silu)};
            },
            "linear+silu [5, 4] input [2, 3, 4] → %0 [2, 3, 5]",
            240,
            24 + 30 + packed_floats(5, 4),
            "fp32 GEMM"},
           {{x, y},
            [](In in) -> Results {
              return {ops::residual_add(in[1], ops::linear(in[0], ones({4, 4}), {}))};
            },
            "linear+residual [4, 4] input [2, 3, 4] → %0 [2, 3, 4]",
            192,
            24 + 24 + 24 + packed_floats(4, 4),
            "fp32 GEMM"},
           {{x, y},
            [](In in) -> Results {
              return {ops::residual_add(in[1], ops::linear(in[0], ones({4, 4}), ones({4})), ones({4}))};
            },
            "linear+scale+residual [4, 4] input [2, 3, 4] → %0 [2, 3, 4]",
            192,
            24 + 24 + 24 + 4 + packed_floats(4, 4),
            "fp32 GEMM"},
           {{x},
            [](In in) -> Results { return {ops::layer_norm(in[0], ones({4}), ones({4}), 1e-5)}; },
            "layer_norm input [2, 3, 4] → %0 [2, 3, 4]",
            0,
            24 + 4 + 4 + 24,
            "layer norm"},
           {{x},
            [](In in) -> Results { return {ops::rms_norm(in[0], ones({4}), 1e-5)}; },
            "rms_norm input [2, 3, 4] → %0 [2, 3, 4]",
            0,
            24 + 4 + 24,
            "RMS norm"},
           {{x, y},
            [](In in) -> Results { return {ops::residual_add(in[0], in[1], ones({4}))}; },
            "residual_add input [2, 3, 4] input [2, 3, 4] → %0 [2, 3, 4]",
            0,
            24 + 24 + 4 + 24,
            "residual add"},
           {{meta({1, 2, 3, 4}), meta({1, 2, 5, 4})},
            [](In in) -> Results { return {ops::attention(in[0], in[1], in[1], 0.5).out}; },
            "attention heads=2 input [1, 2, 3, 4] input [1, 2, 5, 4] input [1, 2, 5, 4] → %0 [1, 3, 8]",
            480,
            24 + 40 + 40 + 24,
            "attention fp32"},
           {{meta({1, 2, 3, 4}), meta({1, 2, 5, 4})},
            [](In in) -> Results {
              const auto result = ops::attention(in[0], in[1], in[1], 0.5, ones({1, 2, 3, 5}), true);
              return {result.out, result.weights};
            },
            "attention heads=2 input [1, 2, 3, 4] input [1, 2, 5, 4] input [1, 2, 5, 4] → %0 [1, 3, 8] %1 [1, 2, 3, 5]",
            480,
            24 + 40 + 40 + 30 + 24 + 30,
            "attention fp32"},
           {{meta({1, 3, 24})},
            [](In in) -> Results {
              return {ops::rotary(in[0], ones({1, 1, 2, 4}), 2, ops::RotaryPairs::interleaved)};
            },
            "rotary heads=2 input [1, 3, 24] → %0 [1, 3, 24]",
            0,
            72 + 8 + 72,
            "rotary"},
           {{meta({1, 2, 4, 6})},
            [](In in) -> Results { return {ops::patchify(in[0], 2, 3)}; },
            "patchify 2×3 input [1, 2, 4, 6] → %0 [1, 4, 12]",
            0,
            96,
            "patchify",
            true},
           {{x},
            [](In in) -> Results { return {ops::activation(in[0], Activation::quick_gelu)}; },
            "quick_gelu input [2, 3, 4] → %0 [2, 3, 4]",
            0,
            48,
            "quick_gelu"},
           {{x},
            [](In in) -> Results { return {ops::silu_gate(in[0])}; },
            "silu_gate input [2, 3, 4] → %0 [2, 3, 2]",
            0,
            24 + 12,
            "SiLU gate"},
           {{x},
            [](In in) -> Results { return {ops::add(in[0], ones({4}))}; },
            "add input [2, 3, 4] → %0 [2, 3, 4]",
            0,
            24 + 4 + 24,
            "add"},
           {{x, y},
            [](In in) -> Results { return {ops::mul(in[0], in[1])}; },
            "mul input [2, 3, 4] input [2, 3, 4] → %0 [2, 3, 4]",
            0,
            72,
            "mul"},
           {{x, y},
            [](In in) -> Results { return {ops::cat({in[0], ones({2, 1, 4}), in[1]}, 1)}; },
            "cat axis=1 input [2, 3, 4] input [2, 3, 4] → %0 [2, 7, 4]",
            0,
            2 * (24 + 8 + 24),
            "cat",
            true},
           {{x},
            [](In in) -> Results { return {ops::cat({in[0], ops::add(in[0], ones({4}))}, 2)}; },
            "cat axis=2 input [2, 3, 4] %0 [2, 3, 4] → %0 [2, 3, 8]",
            0,
            2 * 24,  // the sum is already there
            "cat",
            true},
           {{x},
            [](In in) -> Results { return {ops::mean(in[0], 1)}; },
            "mean input [2, 3, 4] → %0 [2, 4]",
            0,
            24 + 8,
            "mean",
            true},
           {{x},
            [](In in) -> Results { return {ops::contiguous(in[0].transpose(0, 2))}; },
            "copy input [4, 3, 2] → %0 [4, 3, 2]",
            0,
            48,
            "copy",
            true},
           {{meta({1, 6, 4}), meta({1, 2, 6, 3})},
            [](In in) -> Results { return {ops::merge_tokens(in[0], in[1], {}, 2, 1).x}; },
            "merge_tokens 2 input [1, 6, 4] input [1, 2, 6, 3] → %0 [1, 4, 4] %1 [1, 4] %2 [1, 4]",
            54,  // 2 · 3 for each pair of 3 and 3 tokens
            24 + 36 + 16 + 4 + 4,
            "token merging"},
           {{meta({2, 3}, DType::i64)},
            [](In in) -> Results { return {ops::embedding(in[0], ones({5, 4}))}; },
            "embedding input [2, 3] → %0 [2, 3, 4]",
            0,
            2 * 24,
            "embedding",
            true}}) {
    expect_last_step(each);
  }
}

TEST(Steps, NumberTheirBuffersInTheOrderOfFirstUse) {
  const Program program = program_of({meta({2, 4})}, [](In in) -> Results {
    const Tensor a = ops::activation(in[0], Activation::gelu), b = ops::activation(a, Activation::relu);
    return {ops::add(a, b), ops::mul(b, ones({4}))};
  });
  EXPECT_EQ(program.listing(),
            "gelu input [2, 4] → %0 [2, 4]\n"
            "relu %0 [2, 4] → %1 [2, 4]\n"
            "add %0 [2, 4] %1 [2, 4] → %2 [2, 4]\n"
            "mul %1 [2, 4] → %3 [2, 4]\n"
            "buffers 192 bytes\n");
  ASSERT_EQ(program.outputs().size(), 2u);
  EXPECT_EQ(program.outputs()[0].shape, (Shape{2, 4}));
  EXPECT_NE(program.outputs()[0].offset, program.outputs()[1].offset);
  EXPECT_EQ(program.workspace_bytes(), 192u);
}

TEST(Steps, ScratchOfTheLargestStepFollowsTheBuffers) {
  const Tensor x = meta({7, 64});
  const ops::Recorder recorder;
  const Tensor hidden = ops::linear(x, ones({96, 64}), {}), y = ops::linear(hidden, ones({32, 96}), {});
  PackedWeights weights(kernels::Precision::int8);
  const Program program = compile(recorder, {x}, {y}, weights, {});
  const Tensor first = ones({96, 64}), second = ones({32, 96});
  const auto scratch = [](const Tensor& w) {
    return kernels::PackedLinear(w.data<float>(), nullptr, w.size(0), w.size(1), kernels::Precision::int8)
        .scratch_bytes({.count = 7});
  };
  const size_t buffers = aligned(7 * 96 * 4) + aligned(7 * 32 * 4);
  EXPECT_EQ(program.workspace_bytes(), buffers + std::max(scratch(first), scratch(second)));
  EXPECT_TRUE(program.listing().ends_with(str("buffers ", buffers, " bytes\n"))) << program.listing();
  EXPECT_EQ(program.steps()[0].kernel.name, "int8 GEMM");
  EXPECT_EQ(program.steps()[0].kernel.arithmetic, Arithmetic::int8);
}

TEST(StepKernel, OfAttentionHasItsArithmetic) {
  const bool bf16 = kernels::attention_multiplies_bf16();
  using kernels::Precision;
  const ops::KernelOf<float> half_kernel = [](auto, auto) {};
  const ops::Operation attention{.name = "attention", .kind = OpKind::attention, .half_kernel = half_kernel};
  EXPECT_EQ(kernel_of(attention, Precision::fp32).name, "attention fp32");
  const StepKernel half = kernel_of(attention, Precision::half);
  EXPECT_EQ(half.name, bf16 ? "attention bf16" : "attention fp32");
  EXPECT_EQ(half.arithmetic, bf16 ? Arithmetic::bf16 : Arithmetic::fp32);
  for (const bool with_half : {false, true}) {
    ops::Operation fft{.name = "fft"};
    if (with_half) fft.half_kernel = half_kernel;
    const StepKernel kernel = kernel_of(fft, Precision::half);
    EXPECT_EQ(kernel.name, "fft");
    EXPECT_EQ(kernel.isa, kernels::name_of(kernels::active_isa()));
    EXPECT_EQ(kernel.arithmetic, with_half && bf16 ? Arithmetic::bf16 : Arithmetic::fp32);
  }
}

// The kernel for half precision runs where the session's attention has it, on every processor.
TEST(Steps, AnOperationRunsTheKernelOfThePrecision) {
  for (const bool with_half : {false, true}) {
    for (const kernels::Precision precision : {kernels::Precision::fp32, kernels::Precision::half}) {
      const Program program = program_of(
          {meta({3})},
          [with_half](In in) -> Results {
            ops::Operation step{.name = "step", .shape = {3}};
            step.kernel = [](auto, auto out) { out[0].data[0] = 1; };
            if (with_half) step.half_kernel = [](auto, auto out) { out[0].data[0] = 2; };
            return {ops::apply(std::move(step), in)};
          },
          precision);
      const auto workspace = Storage::allocate(program.workspace_bytes());
      const Tensor x = ones({3});
      program.run({.workspace = workspace->data(), .inputs = {x.raw()}});
      const auto* const y = reinterpret_cast<const float*>(workspace->data() + program.outputs()[0].offset);
      EXPECT_EQ(y[0], with_half && precision == kernels::Precision::half ? 2 : 1);
    }
  }
}

TEST(Program, RunsItsStepsInOrderAndReportsEach) {
  std::string ran;
  const auto step = [&](const std::string& name) {
    return Step{name, 0, 0, {}, [&ran, name](const Frame&) { ran += name; }};
  };
  const Program program({step("a"), step("b"), step("c")}, {{Shape{2}, 8}}, 100, 28);
  program.run({});
  EXPECT_EQ(ran, "abc");
  std::string reported;
  program.run({}, [&](size_t index, double seconds) {
    reported += ran.back();
    EXPECT_EQ(index + 1, reported.size());
    EXPECT_GE(seconds, 0);
  });
  EXPECT_EQ(ran, "abcabc");
  EXPECT_EQ(reported, "abc") << "each step is reported after it";
  EXPECT_EQ(program.listing(), "a\nb\nc\nbuffers 100 bytes\n");
  EXPECT_EQ(program.workspace_bytes(), 128u);
  EXPECT_EQ(program.outputs()[0].offset, 8u);
}

TEST(Compile, ErrorsNameWhatAProgramNeeds) {
  const Tensor x = meta({2, 3, 4}), ids = meta({2, 3}, DType::i64);
  const auto message = [](const std::vector<Tensor>& inputs, const auto& compute) {
    return testing::error_of([&] { program_of(inputs, compute); });
  };
  EXPECT_EQ(message({x}, [](In in) -> Results { return in; }),
            "compile: expected outputs that an operation computes, got another tensor");
  EXPECT_EQ(message({x}, [](In in) -> Results { return {ops::add(in[0], in[0]).transpose(0, 1)}; }),
            "compile: expected contiguous outputs, got [3, 2, 4]");
  EXPECT_EQ(message({meta({2}, DType::bf16)}, [](In in) -> Results { return {ops::add(in[0], in[0])}; }),
            "compile: expected f32 operands (integer inputs are for embedding), got bf16");
  EXPECT_EQ(message({x, meta({2, 3, 4}, DType::i64)}, [](In in) -> Results { return {ops::add(in[0], in[1])}; }),
            "compile: expected f32 operands (integer inputs are for embedding), got i64");
  EXPECT_EQ(message({x}, [](In in) -> Results { return {ops::layer_norm(in[0], meta({4}), {}, 1)}; }),
            "compile: expected operations that read inputs or earlier results, got a read of [4], which nothing has "
            "written");
  EXPECT_EQ(message({ids},
                    [](In in) -> Results {
                      return {ops::embedding(in[0].transpose(0, 1), ones({5, 4}))};
                    }),
            "compile: expected an embedding of ids that are an input of the function, got [3, 2]");
  EXPECT_EQ(message({meta({2, 3}, DType::i32)},
                    [](In in) -> Results {
                      return {ops::embedding(in[0], ones({5, 4}))};
                    }),
            "compile: expected an embedding of ids that are an input of the function, got [2, 3]");
}

TEST(Compile, AnIdOutsideTheTableIsAnErrorOfTheRun) {
  const Program program = program_of({meta({3}, DType::i64)}, [](In in) -> Results {
    return {ops::embedding(in[0], Tensor::from<float>({2, 2}, {1, 2, 3, 4}))};
  });
  const auto workspace = Storage::allocate(program.workspace_bytes());
  const auto run = [&](const std::vector<int64_t>& values) {
    const Tensor ids = Tensor::from<int64_t>({3}, values);
    program.run({.workspace = workspace->data(), .inputs = {ids.raw()}});
  };
  run({1, 0, 1});
  const auto* const y = reinterpret_cast<const float*>(workspace->data() + program.outputs()[0].offset);
  EXPECT_EQ(std::vector<float>(y, y + 6), (std::vector<float>{3, 4, 1, 2, 3, 4}));
  EXPECT_EQ(testing::error_of([&] { run({0, 2, 0}); }), "embedding: expected ids from 0 to 1, got 2");
  EXPECT_EQ(testing::error_of([&] { run({0, 0, -1}); }), "embedding: expected ids from 0 to 1, got -1");
}

TEST(Compile, ErrorsNameOperandsThatStepsCannotRead) {
  EXPECT_EQ(testing::error_of([] {
              program_of({meta({2, 3, 4})}, [](In in) -> Results {
                return {ops::residual_add(in[0], ops::linear(in[0], ones({4, 4}), {}), meta({4}))};
              });
            }),
            "compile: expected operands that are inputs, results of recorded operations or constants, got [4]: not "
            "recorded, or the weight of a packed layer (see retained_layers)");
}

}  // namespace
}  // namespace vitrail::infer
