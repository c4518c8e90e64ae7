// SPDX-License-Identifier: Apache-2.0
#pragma once
// Counters and histograms, written in the text format of Prometheus (version 0.0.4).
#include <cstdint>
#include <initializer_list>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

namespace vitrail::serve {

// `route="classify",model="clip"`: labels as the format escapes them, without those whose value is empty.
std::string metric_labels(std::initializer_list<std::pair<const char*, std::string_view>> labels);

class Histogram {
 public:
  explicit Histogram(std::vector<double> bounds) : bounds_(std::move(bounds)), counts_(bounds_.size() + 1) {}

  void add(double value);
  // labels: `route="classify"`, or empty.
  void write(const std::string& name, const std::string& labels, std::string& text) const;

 private:
  std::vector<double> bounds_;    // upper limits, ascending
  std::vector<uint64_t> counts_;  // per bucket; the last has no limit
  double sum_ = 0;
};

// Thread-safe.
class Metrics {
 public:
  // model: empty for a request without one.
  void count_request(const std::string& route, int status, double seconds, const std::string& model = "");
  void count_departed(const std::string& route, const std::string& model = "");
  void count_image(const std::string& model, bool succeeded);
  void count_embedding(const std::string& model, bool known);  // known: it was kept
  void add_decode(const std::string& model, double seconds);
  void add_queue(const std::string& model, double seconds);
  void add_batch(const std::string& model, size_t images, double model_seconds);

  // What the server knows.  Those of one name follow one another.
  struct Gauge {
    std::string name, help;
    double value;
    std::string labels = {};
    const char* type = "gauge";
  };
  std::string text(const std::vector<Gauge>& gauges) const;

 private:
  struct OfModel {
    OfModel();
    uint64_t images = 0, failed_images = 0, known_embeddings = 0, new_embeddings = 0;
    Histogram decode, queue, pass, batch;
  };
  void write(const std::string& name, const char* help, Histogram OfModel::*histogram, std::string& text) const;
  void write(const std::string& name, const char* help,
             std::initializer_list<std::pair<const char*, uint64_t OfModel::*>> results, std::string& text) const;

  mutable std::mutex mutex_;
  std::map<std::tuple<std::string, int, std::string>, uint64_t> requests_;  // by route, status and model
  std::map<std::pair<std::string, std::string>, uint64_t> departed_;        // by route and model
  std::map<std::pair<std::string, std::string>, Histogram> seconds_;        // by route and model
  std::map<std::string, OfModel> models_;
};

}  // namespace vitrail::serve
