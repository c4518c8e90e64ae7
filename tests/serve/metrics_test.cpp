// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "tests/support/messages.h"
#include "vitrail/serve/metrics_internal.h"
#include "vitrail/serve/model_statistics_internal.h"

namespace vitrail::serve {
namespace {

using testing::contains;

// Buckets hold what is at most their bound, and the counts are cumulative.
TEST(Metrics, BucketsOfAHistogramAreCumulativeAndIncludeTheirBound) {
  Histogram histogram({0.5, 1, 2});
  for (const double value : {0.25, 0.5, 0.75, 1.0, 2.0, 2.5, 100.0}) histogram.add(value);
  std::string plain, labelled;
  histogram.write("h", "", plain);
  EXPECT_EQ(plain,
            "h_bucket{le=\"0.5\"} 2\nh_bucket{le=\"1\"} 4\nh_bucket{le=\"2\"} 5\nh_bucket{le=\"+Inf\"} 7\n"
            "h_sum 107\nh_count 7\n");
  histogram.write("h", "route=\"a\"", labelled);
  EXPECT_TRUE(contains(labelled, "h_bucket{route=\"a\",le=\"0.5\"} 2\n")) << labelled;
  EXPECT_TRUE(contains(labelled, "h_sum{route=\"a\"} 107\nh_count{route=\"a\"} 7\n")) << labelled;
}

TEST(Metrics, EachCountIsUnderItsNameAndLabels) {
  Metrics metrics;
  metrics.count_request("classify", 200, 0.5);
  metrics.count_request("classify", 200, 0.25);
  metrics.count_request("classify", 400, 0.125);
  metrics.count_request("embed", 200, 4);
  metrics.count_departed("embed");
  metrics.count_departed("embed", "a");
  metrics.add_batch("b", 4, 1);
  for (int i = 0; i < 3; ++i) metrics.count_image("a", true);
  metrics.count_image("a", false);
  for (int i = 0; i < 2; ++i) metrics.count_embedding("a", true);
  for (int i = 0; i < 5; ++i) metrics.count_embedding("a", false);
  metrics.add_decode("a", 0.5);
  metrics.add_queue("a", 0.25);
  metrics.add_batch("a", 3, 2);
  metrics.add_batch("a", 8, 4);
  const std::string text = metrics.text({{"vitrail_ready", "Whether.", 1}});
  for (const char* line : {"vitrail_requests_total{route=\"classify\",status=\"200\"} 2",
                           "# TYPE vitrail_requests_total counter",
                           "vitrail_requests_total{route=\"classify\",status=\"400\"} 1",
                           "vitrail_requests_total{route=\"embed\",status=\"200\"} 1",
                           "vitrail_departed_requests_total{route=\"embed\"} 1",
                           "vitrail_departed_requests_total{route=\"embed\",model=\"a\"} 1",
                           "vitrail_images_total{result=\"success\",model=\"a\"} 3",
                           "vitrail_images_total{result=\"error\",model=\"a\"} 1",
                           "vitrail_embedding_cache_total{result=\"hit\",model=\"a\"} 2",
                           "vitrail_embedding_cache_total{result=\"miss\",model=\"a\"} 5",
                           "vitrail_request_duration_seconds_sum{route=\"classify\"} 0.875",
                           "vitrail_request_duration_seconds_count{route=\"classify\"} 3",
                           "vitrail_request_duration_seconds_sum{route=\"embed\"} 4",
                           "vitrail_decode_duration_seconds_sum{model=\"a\"} 0.5",
                           "vitrail_queue_duration_seconds_sum{model=\"a\"} 0.25",
                           "vitrail_model_duration_seconds_sum{model=\"a\"} 6",
                           "vitrail_batch_images_sum{model=\"a\"} 11",
                           "vitrail_batch_images_count{model=\"a\"} 2",
                           "vitrail_batch_images_count{model=\"b\"} 1",
                           "vitrail_images_total{result=\"success\",model=\"b\"} 0",
                           "vitrail_batch_images_bucket{model=\"a\",le=\"4\"} 1",
                           "vitrail_batch_images_bucket{model=\"a\",le=\"8\"} 2",
                           "# TYPE vitrail_ready gauge",
                           "vitrail_ready 1"}) {
    EXPECT_TRUE(contains("\n" + text, str("\n", line, "\n"))) << line;
  }
}

TEST(ModelStatistics, AModelWithoutRequestsHasZeros) {
  const ModelStatistics statistics;
  const auto json = statistics.json("photos", "1");
  EXPECT_EQ(json["name"], "photos");
  EXPECT_EQ(json["version"], "1");
  EXPECT_EQ(json["last_inference"], 0);
  EXPECT_EQ(json["inference_count"], 0);
  EXPECT_EQ(json["inference_stats"]["success"]["count"], 0);
  EXPECT_TRUE(json["batch_stats"].empty());
}

TEST(ModelStatistics, EachStageHasItsDurationAndModelsAreApart) {
  ModelStatistics statistics;
  for (int i = 0; i < 2; ++i)
    statistics.add_request("a", true, {.decode = 1, .queue = 2, .model = 4, .output = 8, .total = 16});
  statistics.add_request("a", false, {.decode = 100, .queue = 100, .model = 100, .output = 100, .total = 0.5});
  statistics.add_batch("a", 4, 0.5);
  statistics.add_batch("a", 4, 0.25);
  statistics.add_batch("a", 1, -1);  // a clock that was set back
  statistics.add_request("b", true, {.total = 1});
  const auto json = statistics.json("a", "1");
  const auto check = [&](const char* stage, int count, double seconds) {
    EXPECT_EQ(json["inference_stats"][stage]["count"], count) << stage;
    EXPECT_EQ(json["inference_stats"][stage]["ns"], static_cast<uint64_t>(seconds * 1e9)) << stage;
  };
  check("success", 2, 32);
  check("fail", 1, 0.5);
  check("compute_input", 2, 2);
  check("queue", 2, 4);
  check("compute_infer", 2, 8);
  check("compute_output", 2, 16);
  check("cache_hit", 0, 0);
  EXPECT_GT(json["last_inference"], 1'600'000'000'000);
  EXPECT_EQ(json["inference_count"], 9);  // images
  EXPECT_EQ(json["execution_count"], 3);  // batches
  ASSERT_EQ(json["batch_stats"].size(), 2U);
  EXPECT_EQ(json["batch_stats"][0]["batch_size"], 1);
  EXPECT_EQ(json["batch_stats"][0]["compute_infer"]["ns"], 0);
  EXPECT_EQ(json["batch_stats"][1]["batch_size"], 4);
  EXPECT_EQ(json["batch_stats"][1]["compute_infer"]["count"], 2);
  EXPECT_EQ(json["batch_stats"][1]["compute_infer"]["ns"], 750'000'000);
  EXPECT_EQ(statistics.json("b", "1")["inference_stats"]["success"]["count"], 1);
}

// Each metric has its help, its type and then its lines, in this order.
TEST(Metrics, TheWholeTextWithoutRequests) {
  std::string want;
  const auto begin = [&](const std::string& name, const std::string& type, const std::string& help) {
    want += "# HELP vitrail_" + name + " " + help + "\n# TYPE vitrail_" + name + " " + type + "\n";
  };
  begin("requests_total", "counter", "Responses by route, status and model.");
  begin("departed_requests_total", "counter", "Requests whose client left before the response.");
  begin("images_total", "counter", "Images by result.");
  begin("embedding_cache_total", "counter", "Image embeddings for /v1/segment that were known or computed.");
  begin("request_duration_seconds", "histogram", "From the arrival of a request to its response.");
  begin("decode_duration_seconds", "histogram", "Decoding and preprocessing of an image.");
  begin("queue_duration_seconds", "histogram", "Wait of an image for its batch.");
  begin("model_duration_seconds", "histogram", "Forward pass of a batch.");
  begin("batch_images", "histogram", "Images of a batch.");
  EXPECT_EQ(Metrics().text({}), want);
  EXPECT_EQ(Metrics().text({{"g", "Help of g.", 0.5}, {"h", "Help of h.", 3}}),
            want + "# HELP g Help of g.\n# TYPE g gauge\ng 0.5\n# HELP h Help of h.\n# TYPE h gauge\nh 3\n");
  EXPECT_EQ(Metrics().text({{"g", "Help.", 1, "model=\"a\""}, {"g", "Help.", 2, "model=\"b\""}}),
            want + "# HELP g Help.\n# TYPE g gauge\ng{model=\"a\"} 1\ng{model=\"b\"} 2\n");
}

TEST(Metrics, DurationsAndBatchesHaveTheirBounds) {
  Metrics metrics;
  metrics.add_batch("a", 1, 0.5);
  const std::string text = metrics.text({});
  const auto expect_bounds = [&](const std::string& name, const std::vector<std::string>& bounds) {
    for (const std::string& bound : bounds)
      EXPECT_TRUE(contains(text, name + "_bucket{model=\"a\",le=\"" + bound + "\"} ")) << bound;
  };
  expect_bounds("vitrail_model_duration_seconds", {"0.001", "0.0025", "0.005", "0.01", "0.025", "0.05", "0.1", "0.25",
                                                   "0.5", "1", "2.5", "5", "10", "30", "+Inf"});
  expect_bounds("vitrail_batch_images", {"1", "2", "4", "8", "16", "32", "64", "128", "256", "+Inf"});
}

TEST(Metrics, RequestsOfAModelAreApart) {
  Metrics metrics;
  metrics.count_request("embed", 200, 1, "a");
  metrics.count_request("embed", 200, 1, "b\"\\");
  const std::string text = metrics.text({{"g", "Help.", 1, "version=\"1\"", "counter"}});
  for (const char* line :
       {R"(vitrail_requests_total{route="embed",status="200",model="a"} 1)",
        R"(vitrail_requests_total{route="embed",status="200",model="b\"\\"} 1)",
        R"(vitrail_request_duration_seconds_count{route="embed",model="a"} 1)", "# TYPE g counter\ng{version=\"1\"} 1"})
    EXPECT_TRUE(contains(text, str("\n", line, "\n"))) << line;
}

TEST(Metrics, DurationsOfARouteHaveTheirBuckets) {
  Metrics metrics;
  metrics.count_request("embed", 200, 0.0025);
  metrics.count_request("embed", 200, 31);
  const std::string text = metrics.text({});
  for (const char* line : {"_bucket{route=\"embed\",le=\"0.001\"} 0", "_bucket{route=\"embed\",le=\"0.0025\"} 1",
                           "_bucket{route=\"embed\",le=\"30\"} 1", "_bucket{route=\"embed\",le=\"+Inf\"} 2",
                           "_sum{route=\"embed\"} 31.0025", "_count{route=\"embed\"} 2"})
    EXPECT_TRUE(contains(text, str("\nvitrail_request_duration_seconds", line, "\n"))) << line;
}

TEST(ModelStatistics, AllFieldsAreThoseOfTriton) {
  ModelStatistics statistics;
  statistics.add_batch("a", 2, 0.5);
  EXPECT_EQ(statistics.json("a", "3").dump(),
            R"({"name":"a","version":"3","last_inference":0,"inference_count":2,"execution_count":1,)"
            R"("inference_stats":{"success":{"count":0,"ns":0},"fail":{"count":0,"ns":0},"queue":{"count":0,"ns":0},)"
            R"("compute_input":{"count":0,"ns":0},"compute_infer":{"count":0,"ns":0},)"
            R"("compute_output":{"count":0,"ns":0},"cache_hit":{"count":0,"ns":0},"cache_miss":{"count":0,"ns":0}},)"
            R"("response_stats":{},"batch_stats":[{"batch_size":2,"compute_input":{"count":0,"ns":0},)"
            R"("compute_infer":{"count":1,"ns":500000000},"compute_output":{"count":0,"ns":0}}],"memory_usage":[]})");
}

}  // namespace
}  // namespace vitrail::serve
