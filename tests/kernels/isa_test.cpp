// SPDX-License-Identifier: Apache-2.0
#include "vitrail/kernels/isa/isa.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>

#include "vitrail/base/error.h"
#include "vitrail/kernels/gemm/linear.h"
#include "vitrail/kernels/gemm/onednn_internal.h"

namespace vitrail::kernels {
namespace {

// Highway's name for the target of an instruction set.
std::string highway_name(Isa isa) {
  if (isa == Isa::scalar) return "scalar";
  if (isa == Isa::sse4) return "SSE4";
  if (features_of(isa).has(Feature::neon)) return "NEON";
  return isa == Isa::avx2 ? "AVX2" : "AVX3";
}

// Runs a GEMM and reports on stderr the active instruction set, the target of a kernel, and the limit of oneDNN.
void report_and_exit(const char* name) {
  ::setenv("VITRAIL_CPU", name, 1);
  const float one = 1;
  float c = 0;
  try {
    gemm(false, false, 1, 1, 1, &one, 1, &one, 1, false, &c, 1);
    std::fprintf(stderr, "active %s kernel %s onednn %s gemm %g\n", name_of(active_isa()), dispatched_target().c_str(),
                 onednn::available() ? name_of(onednn::effective_isa()) : "none", c);
  } catch (const Error& error) {
    std::fprintf(stderr, "Error %s\n", error.what());
  }
  std::exit(0);
}

class IsaDeathTest : public ::testing::Test {
 protected:
  // Each statement runs in a fresh process, where nothing has selected an instruction set before.
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

TEST_F(IsaDeathTest, TheEnvironmentCapsHighwayAndOneDnn) {
  for (Isa isa : available_isas()) {
    const std::string capped = onednn::available() ? name_of(isa == Isa::scalar ? Isa::sse4 : isa) : "none";
    EXPECT_EXIT(
        report_and_exit(name_of(isa)), ::testing::ExitedWithCode(0),
        std::string("active ") + name_of(isa) + " kernel " + highway_name(isa) + " onednn " + capped + " gemm 1");
  }
}

TEST_F(IsaDeathTest, AnUnknownNameIsAnErrorThatListsTheMachinesOwn) {
  std::string list;
  for (Isa isa : available_isas()) list += (list.empty() ? "" : ", ") + std::string(name_of(isa));
  EXPECT_EXIT(report_and_exit("avx9000"), ::testing::ExitedWithCode(0),
              "Error VITRAIL_CPU: expected an instruction set of this machine \\(" + list + "\\), got 'avx9000'");
}

TEST_F(IsaDeathTest, AnUnavailableOneIsAnErrorToo) {
  const std::vector<Isa> here = available_isas();
  const Isa absent = features_of(here.back()).has(Feature::neon) ? Isa::avx2 : Isa::neon;
  EXPECT_EXIT(report_and_exit(name_of(absent)), ::testing::ExitedWithCode(0),
              std::string("Error VITRAIL_CPU: .*got '") + name_of(absent) + "'");
  EXPECT_THROW(force_isa(absent), Error);
}

TEST(Isa, ForcingSwitchesWhatKernelsRunWith) {
  const Isa before = active_isa();
  for (Isa isa : available_isas()) {
    force_isa(isa);
    EXPECT_EQ(active_isa(), isa);
    EXPECT_EQ(dispatched_target(), highway_name(isa));
  }
  force_isa(before);
}

TEST(Isa, ScalarIsAlwaysAvailableAndFirst) { EXPECT_EQ(available_isas().front(), Isa::scalar); }

}  // namespace
}  // namespace vitrail::kernels
