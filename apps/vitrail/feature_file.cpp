// SPDX-License-Identifier: Apache-2.0
#include "apps/vitrail/feature_file.h"

#include <CLI/CLI.hpp>
#include <filesystem>
#include <limits>
#include <optional>
#include <vector>

#include "apps/vitrail/output.h"
#include "vitrail/base/atomic_file.h"
#include "vitrail/base/error.h"
#include "vitrail/base/npy.h"

namespace vitrail::app {
namespace {

constexpr const char* kStandardOutput = "/dev/stdout";

// The file with the paths of the images; none for features that do not go to a regular file.
std::optional<std::filesystem::path> list_path(const std::string& features) {
  if (features.starts_with("/dev/")) return std::nullopt;
  return std::filesystem::path(features).replace_extension(".txt");
}

// A line of the list.  A path with a line break, or one that begins with a backslash, is escaped and marked by a
// backslash in front, as in the output of sha256sum.
std::string list_line(const std::string& path, const std::string&) {
  if (path.find_first_of("\n\r") == path.npos && !path.starts_with('\\')) return path + "\n";
  std::string line = "\\";
  for (const char c : path) line += c == '\n' ? "\\n" : c == '\r' ? "\\r" : c == '\\' ? "\\\\" : std::string(1, c);
  return line + "\n";
}

void check_shape(const Tensor& row, const Shape& shape) {
  if (!(row.shape() == shape))
    throw Error("embed", "features of shape " + shape.to_string() + " for all images", row.shape().to_string());
}

// An array, and the list of the paths.  Rows of NaN for images that failed before the shape is known are written then.
class NpyFeatures : public FeatureFile {
 public:
  NpyFeatures(const std::string& path, const std::optional<std::filesystem::path>& list, ListLine line)
      : features_(path, DType::f32), line_(std::move(line)) {
    if (list) list_.emplace(*list);
  }

  void add(const std::string& path, const Tensor& row) override {
    if (!shape_) begin(row.shape());
    check_shape(row, *shape_);
    features_.write_rows(row.contiguous().data<float>(), 1);
    add_line(path, "");
  }
  void add_failure(const std::string& path, const std::string& error) override {
    if (shape_) {
      features_.write_rows(nan_row_.data(), 1);
    } else {
      ++leading_failures_;
    }
    add_line(path, error);
  }
  void finish(const std::function<Shape()>& shape) override {
    if (!shape_) begin(shape());
    features_.finish(list_ ? &*list_ : nullptr);
  }

 private:
  void begin(const Shape& shape) {
    shape_ = shape;
    features_.begin(std::span(shape.begin(), static_cast<size_t>(shape.rank())));
    nan_row_.assign(static_cast<size_t>(shape.numel()), std::numeric_limits<float>::quiet_NaN());
    for (; leading_failures_ > 0; --leading_failures_) features_.write_rows(nan_row_.data(), 1);
  }
  void add_line(const std::string& path, const std::string& error) {
    if (list_) list_->write(line_(path, error));
  }

  std::optional<Shape> shape_;
  NpyWriter features_;
  ListLine line_;
  std::optional<AtomicFile> list_;
  std::vector<float> nan_row_;
  size_t leading_failures_ = 0;
};

// The columns path, f0, f1, …, error.  Several tokens follow each other in a row.
class CsvFeatures : public FeatureFile {
 public:
  explicit CsvFeatures(const std::string& path) : file_(path) {}

  void add(const std::string& path, const Tensor& row) override {
    if (!shape_) begin(row.shape());
    check_shape(row, *shape_);
    const Tensor values = row.contiguous();
    std::string line = csv_field(path);
    for (int64_t i = 0; i < values.numel(); ++i) line += fmt::format(",{:.9g}", values.data<float>()[i]);
    file_.write(line + ",\n");
  }
  void add_failure(const std::string& path, const std::string& error) override {
    if (shape_) {
      write_failure(path, error);
    } else {
      leading_failures_.emplace_back(path, error);
    }
  }
  void finish(const std::function<Shape()>& shape) override {
    if (!shape_) begin(shape());
    file_.commit();
  }

 private:
  void begin(const Shape& shape) {
    shape_ = shape;
    std::string line = "path";
    for (int64_t i = 0; i < shape.numel(); ++i) line += ",f" + std::to_string(i);
    file_.write(line + ",error\n");
    for (const auto& [path, error] : leading_failures_) write_failure(path, error);
  }
  void write_failure(const std::string& path, const std::string& error) {
    file_.write(csv_field(path) + std::string(static_cast<size_t>(shape_->numel()) + 1, ',') + csv_field(error) + "\n");
  }

  std::optional<Shape> shape_;
  AtomicFile file_;
  std::vector<std::pair<std::string, std::string>> leading_failures_;
};

}  // namespace

std::unique_ptr<FeatureFile> make_npy_features(const std::string& array, const std::string& list, ListLine line) {
  return std::make_unique<NpyFeatures>(array, list, std::move(line));
}

std::unique_ptr<FeatureFile> make_feature_file(const std::string& output) {
  const std::string path = output == "-" ? kStandardOutput : output;
  const std::string extension = std::filesystem::path(path).extension().string();
  if (extension == ".csv") return std::make_unique<CsvFeatures>(path);
  if (extension == ".npy" || path.starts_with("/dev/"))
    return std::make_unique<NpyFeatures>(path, list_path(path), list_line);
  throw CLI::ValidationError("-o", "expected FILE.npy, FILE.csv or -, got " + output);
}

}  // namespace vitrail::app
