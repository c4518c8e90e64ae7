// SPDX-License-Identifier: Apache-2.0
#include "vitrail/kernels/isa/isa.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "vitrail/base/error.h"
#include "vitrail/kernels/gemm/dot_microkernels_internal.h"
#include "vitrail/kernels/gemm/linear.h"
#include "vitrail/kernels/gemm/onednn_internal.h"
#include "vitrail/kernels/isa/amx_permission_internal.h"
#include "vitrail/kernels/isa/arm_extensions_internal.h"
#include "vitrail/kernels/isa/dispatch_internal.h"

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

// Each has what those before it have, of its architecture.
TEST(Isa, HasItsNameAndFeatures) {
  struct Case {
    Isa isa;
    const char* name;
    std::vector<Feature> features;
    Target target;
  };
  using enum Feature;
  const std::vector<Case> cases{
      {Isa::scalar, "scalar", {}, Target::scalar},
      {Isa::sse4, "sse4", {sse4}, Target::sse4},
      {Isa::avx2, "avx2", {sse4, avx2}, Target::avx2},
      {Isa::avx512, "avx512", {sse4, avx2, avx512}, Target::avx512},
      {Isa::avx512_vnni, "avx512_vnni", {sse4, avx2, avx512, avx512_vnni}, Target::avx512},
      {Isa::avx512_bf16, "avx512_bf16", {sse4, avx2, avx512, avx512_vnni, avx512_bf16}, Target::avx512},
      {Isa::avx512_amx, "avx512_amx", {sse4, avx2, avx512, avx512_vnni, avx512_bf16, amx}, Target::avx512},
      {Isa::neon, "neon", {neon}, Target::neon},
      {Isa::neon_dotprod, "neon_dotprod", {neon, neon_dotprod}, Target::neon},
      {Isa::neon_i8mm, "neon_i8mm", {neon, neon_dotprod, neon_i8mm}, Target::neon},
      {Isa::neon_bf16, "neon_bf16", {neon, neon_dotprod, neon_i8mm, Feature::neon_bf16}, Target::neon}};
  for (const Case& each : cases) {
    EXPECT_STREQ(name_of(each.isa), each.name);
    EXPECT_EQ(target_of(features_of(each.isa)), each.target) << each.name;
    for (const Feature feature :
         {sse4, avx2, avx512, avx512_vnni, avx512_bf16, amx, neon, neon_dotprod, neon_i8mm, Feature::neon_bf16}) {
      EXPECT_EQ(features_of(each.isa).has(feature), std::ranges::count(each.features, feature) == 1)
          << each.name << " " << static_cast<uint32_t>(feature);
    }
  }
  EXPECT_EQ(name_of(static_cast<Isa>(cases.size())), nullptr) << "there is no other";
}

int base_version() { return 1; }
int scalar_version() { return 2; }
int sse4_version() { return 3; }
int avx2_version() { return 4; }
int avx512_version() { return 5; }

TEST(KernelTable, TakesTheVersionBelowOneThatIsNotCompiled) {
  using Versions = std::vector<int>;
  const auto called = [](const KernelTable<int()>& table) {
    Versions versions;
    for (int (*const version)() : table) versions.push_back(version ? version() : 0);
    return versions;
  };
  const auto table = [](bool sse4, bool avx2, bool avx512) {
    return kernel_table<int()>(base_version, scalar_version, sse4 ? sse4_version : nullptr,
                               avx2 ? avx2_version : nullptr, avx512 ? avx512_version : nullptr);
  };
  EXPECT_EQ(called(table(true, true, true)), (Versions{2, 3, 4, 5, 1}));
  EXPECT_EQ(called(table(true, true, false)), (Versions{2, 3, 4, 4, 1}));
  EXPECT_EQ(called(table(true, false, true)), (Versions{2, 3, 3, 5, 1}));
  EXPECT_EQ(called(table(false, true, false)), (Versions{2, 1, 4, 4, 1}));
  EXPECT_EQ(called(table(false, false, false)), (Versions{2, 1, 1, 1, 1}));
  EXPECT_EQ(kNumTargets, 5u);
}

TEST(Isa, AnUnavailableOneIsNamedByTheErrorAndChangesNothing) {
  const Isa before = active_isa();
  const Isa absent = features_of(available_isas().back()).has(Feature::neon) ? Isa::avx2 : Isa::neon_i8mm;
  std::string list;
  for (Isa isa : available_isas()) list += (list.empty() ? "" : ", ") + std::string(name_of(isa));
  try {
    force_isa(absent);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(std::string(error.what()), "instruction set: expected an instruction set of this machine (" + list +
                                             "), got '" + name_of(absent) + "'");
  }
  EXPECT_EQ(active_isa(), before);
}

// Reports on stderr whether the instruction set was asked for: first by the variable, if it is given, then by a call.
void report_requests_and_exit(const char* name) {
  name ? ::setenv("VITRAIL_CPU", name, 1) : ::unsetenv("VITRAIL_CPU");
  const bool by_variable = isa_is_requested();
  const bool is_default = active_isa() == available_isas().back();
  force_isa(Isa::scalar);
  std::fprintf(stderr, "requested %d default %d then %d", by_variable, is_default, isa_is_requested());
  std::exit(0);
}

TEST_F(IsaDeathTest, KnowsWhetherItWasRequested) {
  EXPECT_EXIT(report_requests_and_exit(nullptr), ::testing::ExitedWithCode(0), "requested 0 default 1 then 1");
  EXPECT_EXIT(report_requests_and_exit("scalar"), ::testing::ExitedWithCode(0), "requested 1 default 0 then 1");
}

#if defined(__x86_64__) && defined(__linux__)
// Linux lists what the processor has and the system supports.
TEST(Isa, AvailableOnesAreThoseThatLinuxLists) {
  std::ifstream info("/proc/cpuinfo");
  std::set<std::string> flags;
  for (std::string line; std::getline(info, line) && flags.empty();) {
    if (!line.starts_with("flags")) continue;
    std::istringstream listed(line.substr(line.find(':') + 1));
    for (std::string flag; listed >> flag;) flags.insert(flag);
  }
  if (flags.empty()) GTEST_SKIP() << "no flags in /proc/cpuinfo";
  const auto all = [&](const std::vector<std::string>& names) {
    return std::ranges::all_of(names, [&](const std::string& name) { return flags.contains(name); });
  };
  std::vector<Isa> want{Isa::scalar};
  if (all({"sse4_1", "sse4_2", "pclmulqdq", "aes"})) want.push_back(Isa::sse4);
  if (want.back() == Isa::sse4 && all({"avx2", "fma", "bmi1", "bmi2"})) want.push_back(Isa::avx2);
  const auto add = [&](Isa after, Isa isa, const std::vector<std::string>& names) {
    if (want.back() == after && all(names)) want.push_back(isa);
  };
  add(Isa::avx2, Isa::avx512, {"avx512f", "avx512vl", "avx512dq", "avx512bw", "avx512cd"});
  add(Isa::avx512, Isa::avx512_vnni, {"avx512_vnni"});
  add(Isa::avx512_vnni, Isa::avx512_bf16, {"avx512_bf16"});
  std::vector<Isa> got = available_isas();
  const bool amx = all({"amx_tile", "amx_int8", "amx_bf16"});
  EXPECT_EQ(processor_has_amx(), amx);
  if (!amx) {
    EXPECT_FALSE(may_use_amx_tiles());
    EXPECT_NE(got.back(), Isa::avx512_amx);
  }
  std::erase(got, Isa::avx512_amx);
  EXPECT_EQ(got, want);
}

TEST(Isa, X86HasNoExtensionsOfArm) {
  EXPECT_FALSE(processor_has_dot_product());
  EXPECT_FALSE(processor_has_i8mm());
  EXPECT_FALSE(processor_has_arm_bf16());
  const auto message = [](DotMicrokernel (*microkernel)()) -> std::string {
    try {
      microkernel();
      return "none";
    } catch (const std::logic_error& error) {
      return error.what();
    }
  };
  EXPECT_EQ(message(neon_dotprod_microkernel), "SDOT exists on 64-bit ARM only");
  EXPECT_EQ(message(neon_i8mm_microkernel), "USMMLA exists on 64-bit ARM only");
  EXPECT_EQ(message(neon_bf16_microkernel), "BFMMLA exists on 64-bit ARM only");
  const std::set<DotMicrokernel> own{vnni_microkernel(), int16_microkernel(), bf16_microkernel(),
                                     amx_int8_microkernel(), amx_bf16_microkernel()};
  EXPECT_EQ(own.size(), 5u);
}
#endif

}  // namespace
}  // namespace vitrail::kernels
