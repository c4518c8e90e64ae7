// SPDX-License-Identifier: Apache-2.0
#include "apps/vitrail/bench/bench_profile.h"

#include <fmt/core.h>

#include <algorithm>
#include <vector>

#include "apps/vitrail/output/output.h"
#include "vitrail/kernels/isa/isa.h"

namespace vitrail::app {
namespace {

using Json = nlohmann::ordered_json;

// A program's steps with the minimum time of each and its bound.
struct Profile {
  std::shared_ptr<const infer::Program> program;
  std::vector<double> seconds = {};
  std::vector<infer::StepBound> bounds = {};
  double total = 0, total_bound = 0, flops = 0;
};

Profile profile_of(const infer::Session& session, const Tensor& images, infer::Roofline& roofline) {
  constexpr int kRounds = 20;
  const int64_t per_pass = session.images_per_pass(images.shape());
  Profile result{.program = session.program(images.narrow(0, 0, per_pass).shape())};
  const std::vector<infer::Step>& steps = result.program->steps();
  result.seconds.assign(steps.size(), 1e9);
  for (int round = 0; round < kRounds; ++round) {
    session.profile(
        images, [&](size_t step, double seconds) { result.seconds[step] = std::min(result.seconds[step], seconds); });
  }
  for (size_t i = 0; i < steps.size(); ++i) {
    result.bounds.push_back(roofline.bound_of(steps[i]));
    result.total += result.seconds[i];
    result.total_bound += result.bounds[i].seconds;
    result.flops += steps[i].flops;
  }
  return result;
}

Json step_json(const Profile& profile, size_t i) {
  const infer::Step& step = profile.program->steps()[i];
  const double seconds = profile.seconds[i];
  return {{"step", step.text},
          {"ms", 1e3 * seconds},
          {"percent", 100 * seconds / profile.total},
          {"gflop_per_s", step.flops / seconds / 1e9},
          {"gb_per_s", step.bytes / seconds / 1e9},
          {"kernel", step.kernel.name},
          {"isa", step.kernel.isa},
          {"bound", infer::name_of(profile.bounds[i].limit)},
          {"share", 100 * profile.bounds[i].seconds / seconds}};
}

// The rates that bound the steps.
Json rates_of(infer::Roofline& roofline) {
  Json gemm = Json::object();
  for (const auto& [arithmetic, rate] : roofline.gemm_rates()) gemm[kernels::name_of(arithmetic)] = rate / 1e9;
  return {{"gemm_gflop_per_s", gemm},
          {"cache_gb_per_s", roofline.cache_rate() / 1e9},
          {"memory_gb_per_s", roofline.memory_rate() / 1e9}};
}

void print_rates(const Json& rates, int threads) {
  std::string text;
  for (const auto& [arithmetic, rate] : rates["gemm_gflop_per_s"].items())
    text += fmt::format("{} GEMM {:.1f} GFLOP/s, ", arithmetic, rate.get<double>());
  print_output("bounds: {}copy in cache {:.1f} GB/s, in memory {:.1f} GB/s; {}\n", text,
               rates["cache_gb_per_s"].get<double>(), rates["memory_gb_per_s"].get<double>(),
               threads == 1 ? "1 thread" : fmt::format("{} threads", threads));
}

void print_table(const Profile& profile) {
  const std::vector<infer::Step>& steps = profile.program->steps();
  size_t kernel_width = 6, isa_width = 3;
  for (const infer::Step& step : steps) {
    kernel_width = std::max(kernel_width, step.kernel.name.size());
    isa_width = std::max(isa_width, step.kernel.isa.size());
  }
  print_output("{:>9s} {:>6s} {:>8s} {:>7s} {:>7s} {:<7s}  {:<{}}  {:<{}}  step\n", "ms", "%", "GFLOP/s", "GB/s",
               "share %", "bound", "kernel", kernel_width, "isa", isa_width);
  for (size_t i = 0; i < steps.size(); ++i) {
    const infer::Step& step = steps[i];
    const double seconds = profile.seconds[i];
    print_output("{:9.4f} {:6.2f} {:8.1f} {:7.1f} {:7.1f} {:<7s}  {:<{}}  {:<{}}  {}\n", seconds * 1e3,
                 100 * seconds / profile.total, step.flops / seconds / 1e9, step.bytes / seconds / 1e9,
                 100 * profile.bounds[i].seconds / seconds, infer::name_of(profile.bounds[i].limit), step.kernel.name,
                 kernel_width, step.kernel.isa, isa_width, step.text);
  }
  print_output("{:9.4f} {:6.2f} {:8.1f} {:>7s} {:7.1f} total\n", profile.total * 1e3, 100.0,
               profile.flops / profile.total / 1e9, "", 100 * profile.total_bound / profile.total);
}

}  // namespace

void ProfilePrinter::print(const infer::Session& session, const Tensor& images) {
  const int64_t batch = images.size(0), per_pass = session.images_per_pass(images.shape());
  const int threads = session.threads_at_work(images.shape());
  infer::Roofline& roofline = rooflines_.try_emplace(threads, threads).first->second;
  const Profile profile = profile_of(session, images, roofline);
  const Json rates = rates_of(roofline);
  const char* const arithmetic = kernels::arithmetic_of(session.precision());
  if (format_.is_json_requested()) {
    Json steps = Json::array();
    for (size_t i = 0; i < profile.seconds.size(); ++i) steps.push_back(step_json(profile, i));
    return print_json({{"model", model_},
                       {"batch", batch},
                       {"images_per_pass", per_pass},
                       {"precision", kernels::name_of(session.precision())},
                       {"arithmetic", arithmetic},
                       {"threads", threads},
                       {"isa", kernels::name_of(kernels::active_isa())},
                       {"bounds", rates},
                       {"total_ms", 1e3 * profile.total},
                       {"gflop_per_s", profile.flops / profile.total / 1e9},
                       {"share", 100 * profile.total_bound / profile.total},
                       {"steps", steps}});
  }
  if (per_pass < batch)
    print_output("one pass: {} of {} images, {} of {} threads\n", per_pass, batch, threads, session.threads());
  print_output("arithmetic: {}\n", arithmetic);
  print_rates(rates, threads);
  print_table(profile);
}

}  // namespace vitrail::app
