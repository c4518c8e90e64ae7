// SPDX-License-Identifier: Apache-2.0
// The kernels of a compiled program's steps, and the bounds of their times.
#include "vitrail/infer/roofline.h"

#include <gtest/gtest.h>

#include <set>

#include "vitrail/base/cache_size_internal.h"
#include "vitrail/infer/session.h"
#include "vitrail/kernels/attention/attention.h"
#include "vitrail/kernels/isa/isa.h"
#include "vitrail/models/registry.h"

namespace vitrail::infer {
namespace {

using kernels::Arithmetic;
using kernels::Isa;
using kernels::Precision;

class ProgramOnIsa {
 public:
  ProgramOnIsa(Isa isa, Precision precision) : session_(model(isa), {.threads = 1, .precision = precision}) {}
  const std::vector<Step>& steps() const { return program_->steps(); }

 private:
  static models::VisionTransformer model(Isa isa) {
    kernels::force_isa(isa);
    models::VisionTransformerConfig config = models::find_architecture("cifar_vit_d192")->config;
    config.depth = 2;
    RandomParams random(0);
    return models::VisionTransformer(config, ParamSource(random));
  }

  Session session_;
  std::shared_ptr<const Program> program_ = session_.program({1, 3, 32, 32});
};

class StepKernelOn : public ::testing::TestWithParam<Isa> {
 protected:
  void TearDown() override { kernels::force_isa(kernels::available_isas().back()); }
};

TEST_P(StepKernelOn, EveryStepNamesItsKernelAndInstructionSet) {
  for (const Precision precision : {Precision::fp32, Precision::half, Precision::int8}) {
    const ProgramOnIsa program(GetParam(), precision);
    const std::string active = kernels::name_of(GetParam());
    const std::set<std::string> expected = {active, "scalar", "oneDNN"};
    std::set<std::string> used;
    for (const Step& step : program.steps()) {
      EXPECT_NE(step.kernel.name, "") << step.text;
      EXPECT_TRUE(expected.contains(step.kernel.isa)) << step.text << ": " << step.kernel.isa;
      used.insert(step.kernel.isa);
    }
    EXPECT_TRUE(used.contains(active));
    if (GetParam() == Isa::scalar) {
      EXPECT_EQ(used, std::set<std::string>{"scalar"});
    }
  }
}

// Loops in plain C++ are the same on all processors.
TEST_P(StepKernelOn, PlainLoopsAreScalar) {
  kernels::force_isa(GetParam());
  models::VisionTransformerConfig config = models::find_architecture("cifar_vit_d192")->config;
  config.depth = 1;
  config.global_pool = models::GlobalPool::avg;
  RandomParams random(0);
  const Session session(models::VisionTransformer(config, ParamSource(random)), {.threads = 1});
  std::set<std::string> loops;
  const auto program = session.program({1, 3, 32, 32});
  for (const Step& step : program->steps()) {
    const std::string kind = step.text.substr(0, step.text.find(' '));
    if (!std::set<std::string>{"patchify", "cat", "mean", "copy"}.contains(kind)) continue;
    EXPECT_EQ(step.kernel.isa, "scalar") << step.text;
    loops.insert(kind);
  }
  EXPECT_TRUE(loops.contains("mean") && loops.contains("patchify")) << ::testing::PrintToString(loops);
}

TEST_P(StepKernelOn, GemmAndAttentionNameTheirArithmetic) {
  for (const Precision precision : {Precision::fp32, Precision::half, Precision::int8}) {
    const ProgramOnIsa program(GetParam(), precision);
    std::set<std::string> block_gemms, attention;
    for (const Step& step : program.steps()) {
      if (step.text.starts_with("linear+gelu")) block_gemms.insert(step.kernel.name);
      if (step.text.starts_with("attention")) attention.insert(step.kernel.name);
    }
    const std::string arithmetic = kernels::arithmetic_of(precision);
    EXPECT_EQ(block_gemms, std::set<std::string>{arithmetic.substr(0, arithmetic.find(' ')) + " GEMM"});
    const bool bf16 = precision != Precision::fp32 && kernels::attention_multiplies_bf16();
    EXPECT_EQ(attention, std::set<std::string>{bf16 ? "attention bf16" : "attention fp32"});
  }
}

TEST_P(StepKernelOn, AnInt8WeightCountsWithItsPackedBytes) {
  const ProgramOnIsa fp32(GetParam(), Precision::fp32), int8(GetParam(), Precision::int8);
  for (size_t i = 0; i < fp32.steps().size(); ++i) {
    const Step &wide = fp32.steps()[i], &narrow = int8.steps()[i];
    if (wide.text.starts_with("linear+gelu")) {
      EXPECT_LT(narrow.bytes, wide.bytes) << wide.text;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Isas, StepKernelOn, ::testing::ValuesIn(kernels::available_isas()),
                         [](const auto& info) { return std::string(kernels::name_of(info.param)); });

Step step_of(double flops, double bytes, Arithmetic arithmetic = Arithmetic::fp32) {
  return {"", flops, bytes, {"", "", arithmetic}, {}};
}

TEST(Roofline, TheSlowerOfArithmeticAndTransferBinds) {
  Roofline roofline(1);
  const auto cache = static_cast<double>(last_level_cache_bytes());
  const StepBound compute = roofline.bound_of(step_of(1e12, 1e3));
  EXPECT_EQ(compute.limit, Limit::compute);
  EXPECT_DOUBLE_EQ(compute.seconds, 1e12 / roofline.gemm_rate(Arithmetic::fp32));
  const StepBound cached = roofline.bound_of(step_of(0, cache));
  EXPECT_EQ(cached.limit, Limit::cache);
  EXPECT_DOUBLE_EQ(cached.seconds, cache / roofline.cache_rate());
  const StepBound memory = roofline.bound_of(step_of(1, 2 * cache));
  EXPECT_EQ(memory.limit, Limit::memory);
  EXPECT_DOUBLE_EQ(memory.seconds, 2 * cache / roofline.memory_rate());
  EXPECT_STREQ(name_of(memory.limit), "memory");
}

TEST(Roofline, MeasuresTheRatesThatStepsNeed) {
  Roofline roofline(2);
  EXPECT_EQ(roofline.threads(), 2);
  roofline.bound_of(step_of(0, 1e3));
  EXPECT_TRUE(roofline.gemm_rates().empty());
  roofline.bound_of(step_of(1e6, 1e3, Arithmetic::int8));
  ASSERT_EQ(roofline.gemm_rates().size(), 1u);
  const double rate = roofline.gemm_rates().at(Arithmetic::int8);
  EXPECT_GT(rate, 0);
  EXPECT_EQ(roofline.gemm_rate(Arithmetic::int8), rate) << "measured once";
  EXPECT_EQ(roofline.gemm_rate(Arithmetic::bf16), roofline.gemm_rate(Arithmetic::int16)) << "both of half";
}

TEST(Roofline, LimitsHaveTheirNames) {
  EXPECT_STREQ(name_of(Limit::compute), "compute");
  EXPECT_STREQ(name_of(Limit::cache), "cache");
  EXPECT_STREQ(name_of(Limit::memory), "memory");
}

// A step of one byte more than the last-level cache is bound by memory; a step without arithmetic by its transfer.
TEST(Roofline, TheCacheEndsAtItsLastByte) {
  Roofline roofline(1);
  const auto cache = static_cast<double>(last_level_cache_bytes());
  EXPECT_EQ(roofline.bound_of(step_of(0, cache)).limit, Limit::cache);
  EXPECT_EQ(roofline.bound_of(step_of(0, cache + 1)).limit, Limit::memory);
  const StepBound nothing = roofline.bound_of(step_of(0, 0));
  EXPECT_EQ(nothing.seconds, 0);
  EXPECT_EQ(nothing.limit, Limit::cache);
  // With few operations, what is transferred in their time fits the cache at any rates.
  const double flops = 1e3, seconds = flops / roofline.gemm_rate(Arithmetic::fp32);
  const StepBound compute = roofline.bound_of(step_of(flops, 0.5 * seconds * roofline.cache_rate()));
  EXPECT_EQ(compute.limit, Limit::compute);
  EXPECT_EQ(compute.seconds, seconds);
  const StepBound transfer = roofline.bound_of(step_of(flops, 2 * seconds * roofline.cache_rate()));
  EXPECT_NE(transfer.limit, Limit::compute);
  // Each rate is measured once.
  const double fp32 = roofline.gemm_rate(Arithmetic::fp32), cache_rate = roofline.cache_rate();
  EXPECT_EQ(roofline.gemm_rate(Arithmetic::fp32), fp32);
  EXPECT_EQ(roofline.cache_rate(), cache_rate);
  EXPECT_EQ(roofline.memory_rate(), roofline.memory_rate());
  EXPECT_EQ(roofline.gemm_rates().size(), 1u);
  EXPECT_EQ(roofline.gemm_rates().at(Arithmetic::fp32), fp32);
}

}  // namespace
}  // namespace vitrail::infer
