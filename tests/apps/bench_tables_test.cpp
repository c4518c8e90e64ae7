// SPDX-License-Identifier: Apache-2.0
// The numbers, titles and columns of bench.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <map>

#include "tests/apps/cli_fixture.h"
#include "tests/apps/option_effects.h"
#include "tests/support/sam_fixture.h"
#include "vitrail/infer/session.h"
#include "vitrail/kernels/gemm/linear.h"
#include "vitrail/kernels/isa/isa.h"
#include "vitrail/models/flops.h"
#include "vitrail/models/load.h"

namespace vitrail::testing {
namespace {

using nlohmann::json;

Arguments bench(const std::string& model, const Arguments& more) {
  return Arguments{"bench", model, "--seconds", "1e-9"} + more;
}

// The operations of a measurement are those of the library.
TEST(BenchNumbers, CountTheOperationsOfTheModel) {
  const double flops =
      models::forward_flops(models::build_model(models::open_model(small_model())), {1, 3, 32, 32}) / 1e6;
  for (const int batch : {1, 2}) {
    const json object = json_of(bench(small_model(), {"--batch", std::to_string(batch)}));
    EXPECT_NEAR(object["gflop_per_s"].get<double>() * object["min_ms"].get<double>(), batch * flops, 1e-6 * flops);
    EXPECT_EQ(object["model"], small_model());
    EXPECT_EQ(object["precision"], "fp32");
    EXPECT_EQ(object["arithmetic"], "fp32");
    EXPECT_EQ(object["isa"], kernels::name_of(kernels::active_isa()));
    EXPECT_GT(object["peak_rss_mb"], 5);
    EXPECT_LT(object["peak_rss_mb"], 20000);
    const json trained = json_of(bench(small_model(), {"--batch", std::to_string(batch), "--train"}));
    EXPECT_NEAR(trained["gflop_per_s"].get<double>() * trained["min_ms"].get<double>(), 3 * batch * flops,
                1e-6 * flops);
    EXPECT_EQ(trained["model"], small_model());
    EXPECT_EQ(trained["isa"], kernels::name_of(kernels::active_isa()));
    EXPECT_EQ(trained["precision"], "fp32");
    EXPECT_LE(trained["min_ms"], trained["median_ms"]);
  }
  const json scalar = json_lines(run(bench(small_model(), {"--batch", "1"}), {{"VITRAIL_CPU", "scalar"}}).out).at(0);
  EXPECT_EQ(scalar["isa"], "scalar");
  const std::vector<json> defaults = json_lines(run(bench(small_model(), {})).out);
  ASSERT_EQ(defaults.size(), 2U);
  EXPECT_EQ(defaults[0]["batch"], 1);
  EXPECT_EQ(defaults[1]["batch"], 8);
}

// Each precision with each batch, in this order.
TEST(BenchNumbers, AreOfEachPrecisionAndBatch) {
  for (const Arguments& train : {Arguments{}, Arguments{"--train"}}) {
    const std::vector<json> objects =
        json_lines(run(bench(small_model(), Arguments{"--batch", "2,1", "--precision", "half,fp32"} + train)).out);
    ASSERT_EQ(objects.size(), 4U);
    for (size_t i = 0; i < 4; ++i) {
      EXPECT_EQ(objects[i]["precision"], i < 2 ? "half" : "fp32");
      EXPECT_EQ(objects[i]["batch"], i % 2 == 0 ? 2 : 1);
    }
  }
  const json half = json_of(bench(small_model(), {"--batch", "1", "--precision", "half"}));
  EXPECT_EQ(half["arithmetic"], kernels::arithmetic_of(kernels::Precision::half));
  const json trained = json_of(bench(small_model(), {"--batch", "1", "--precision", "half", "--train"}));
  EXPECT_EQ(trained["arithmetic"], kernels::multiplies_bf16() ? "bf16" : "fp32 (operands rounded to bf16)");
}

// Numbers end below their titles; the last column begins there.
TEST(BenchTable, HasTheColumnsOfItsTitles) {
  for (const auto& [arguments, about] : {std::pair(Arguments{"--threads", "2"}, ", 2 threads, "),
                                         std::pair(Arguments{"--threads", "1", "--train"}, ", 1 thread, ")}) {
    const std::vector<std::string> lines = [&, arguments = arguments] {
      std::vector<std::string> all;
      for (const std::string& line :
           lines_of(run(bench(small_model(), Arguments{"--batch", "1,16", "--format", "table"} + arguments)).out))
        all.push_back(line);
      return all;
    }();
    ASSERT_EQ(lines.size(), 4U);
    const bool train = arguments.back() == "--train";
    EXPECT_EQ(lines[0],
              (train ? "training steps of " : "") + small_model() + about + kernels::name_of(kernels::active_isa()));
    EXPECT_EQ(lines[1],
              "           task    batch      precision  median ms   min ms  images/s  GFLOP/s  peak MiB  arithmetic");
    const std::string task = train ? "          train" : "        forward";
    for (const size_t row : {size_t{2}, size_t{3}}) {
      EXPECT_TRUE(lines[row].starts_with(task + (row == 2 ? "        1" : "       16") + std::string(11, ' ') + "fp32"))
          << lines[row];
      EXPECT_EQ(lines[row].substr(88), "  fp32") << lines[row];
      double median = 0, min = 0, rate = 0, flops = 0, memory = 0;
      ASSERT_EQ(std::sscanf(lines[row].c_str() + 39, "%lf %lf %lf %lf %lf", &median, &min, &rate, &flops, &memory), 5)
          << lines[row];
      EXPECT_LE(min, median);
      const double batch = row == 2 ? 1 : 16;
      EXPECT_NEAR(rate, 1e3 * batch / median, 0.06 + 1e3 * batch / median * 0.001 / median) << lines[row];
      EXPECT_GT(memory, 5) << lines[row];
    }
  }
}

// At least so many runs of each task, however long they take.
TEST(BenchSegment, HasItsMinimalNumbersOfRuns) {
  const std::string model = sam_fixture("padded_windows").model;
  const std::vector<json> objects = json_lines(run(bench(model, {"--threads", "2"})).out);
  ASSERT_EQ(objects.size(), 4U);
  const int runs[] = {3, 5, 3, 1};
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(objects[i]["runs"], runs[i]) << objects[i];
    EXPECT_EQ(objects[i]["threads"], 2);
    EXPECT_EQ(objects[i]["model"], model);
    EXPECT_EQ(objects[i]["batch"], 1);
    EXPECT_EQ(objects[i]["isa"], kernels::name_of(kernels::active_isa()));
  }
  const std::vector<std::string> lines = lines_of(run(bench(model, {"--format", "table", "--threads", "2"})).out);
  ASSERT_EQ(lines.size(), 6U);
  EXPECT_EQ(lines[0], model + ", 2 threads, " + kernels::name_of(kernels::active_isa()));
  EXPECT_EQ(lines[1], "           task  prompts      precision  median ms   min ms  peak MiB  arithmetic");
  EXPECT_TRUE(lines[2].starts_with("  image_encoder        0           fp32")) << lines[2];
  EXPECT_TRUE(lines[5].starts_with("     everything     1024           fp32")) << lines[5];
}

// The rows of a profile: the columns of each add up to the last line, which is the sum.
TEST(BenchProfile, ItsTableAddsUp) {
  const std::vector<std::string> lines =
      lines_of(run({"bench", small_model(), "--batch", "1", "--profile", "--threads", "1"}).out);
  ASSERT_GT(lines.size(), 10U);
  EXPECT_EQ(lines[0], "arithmetic: fp32");
  EXPECT_TRUE(lines[1].starts_with("bounds: fp32 GEMM ")) << lines[1];
  EXPECT_TRUE(lines[1].ends_with("; 1 thread")) << lines[1];
  EXPECT_TRUE(lines[2].starts_with("       ms      %  GFLOP/s    GB/s share % bound    kernel")) << lines[2];
  EXPECT_TRUE(lines[2].ends_with("  step")) << lines[2];
  double ms = 0, percent = 0;
  for (size_t i = 3; i < lines.size(); ++i) {
    double own = 0, part = 0;
    ASSERT_EQ(std::sscanf(lines[i].c_str(), "%lf %lf", &own, &part), 2) << lines[i];
    if (i + 1 < lines.size()) {
      ms += own, percent += part;
      continue;
    }
    EXPECT_TRUE(lines[i].ends_with(" total")) << lines[i];
    EXPECT_NEAR(own, ms, 1e-4 * static_cast<double>(lines.size())) << lines[i];
    EXPECT_NEAR(percent, 100, 0.01 * static_cast<double>(lines.size()));
    EXPECT_EQ(part, 100);
  }
}

// A batch of an image for each thread goes through in passes of a part of it.
TEST(BenchProfile, SaysWhatAPassIs) {
  const infer::Session session(models::build_model(models::open_model(small_model())), {.threads = 2});
  const int64_t per_pass = session.images_per_pass({4, 3, 32, 32});
  ASSERT_LT(per_pass, 4);
  const Arguments arguments{"bench", small_model(), "--batch", "4", "--profile", "--threads", "2"};
  EXPECT_EQ(lines_of(run(arguments).out).at(0),
            str("one pass: ", per_pass, " of 4 images, ", session.threads_at_work({4, 3, 32, 32}), " of 2 threads"));
  const json object = json_of(arguments + Arguments{"--format", "json"});
  EXPECT_EQ(object["images_per_pass"], per_pass);
  EXPECT_EQ(object["batch"], 4);
  EXPECT_EQ(object["threads"], session.threads_at_work({4, 3, 32, 32}));
  EXPECT_EQ(object["precision"], "fp32");
  EXPECT_EQ(object["model"], small_model());
}

// Layers that the folder excludes from int8 are not int8 here either.
TEST(BenchProfile, ExcludedLayersHaveSixteenBits) {
  const std::filesystem::path none = scratch_folder(), all = scratch_folder();
  run({"convert", small_model(), "-o", none, "--dtype", "int8"});
  run({"convert", small_model(), "-o", all, "--dtype", "int8", "--calibrate", image_folder(1), "--tolerance", "1e-9"});
  const auto int8_steps = [](const std::string& model) {
    const json object =
        json_of({"bench", model, "--batch", "1", "--precision", "int8", "--profile", "--format", "json"});
    EXPECT_EQ(object["precision"], "int8");
    return std::ranges::count_if(object["steps"], [](const json& step) { return step["kernel"] == "int8 GEMM"; });
  };
  EXPECT_EQ(int8_steps(none), 8);
  EXPECT_EQ(int8_steps(all), 0);
}

// A step's numbers are of its time.
TEST(BenchProfile, StepsHaveTheirRates) {
  const json object = json_of({"bench", small_model(), "--batch", "1", "--profile", "--format", "json"});
  const double total = object["total_ms"];
  double bytes = 0;
  for (const json& step : object["steps"]) {
    EXPECT_NEAR(step["percent"].get<double>(), 100 * step["ms"].get<double>() / total, 1e-6);
    EXPECT_GT(step["ms"], 0);
    EXPECT_LT(step["ms"], 1000);
    bytes += step["gb_per_s"].get<double>() * step["ms"].get<double>();
  }
  EXPECT_GT(bytes, 0);
  EXPECT_GT(object["bounds"]["cache_gb_per_s"].get<double>(), 0.01);
  EXPECT_LT(object["bounds"]["cache_gb_per_s"].get<double>(), 100000);
  for (const json& rate : object["bounds"]["gemm_gflop_per_s"]) {
    EXPECT_GT(rate.get<double>(), 0.001);
    EXPECT_LT(rate.get<double>(), 1e7);
  }
}

}  // namespace
}  // namespace vitrail::testing
