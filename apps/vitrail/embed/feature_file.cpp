// SPDX-License-Identifier: Apache-2.0
#include "apps/vitrail/embed/feature_file.h"

#include <CLI/CLI.hpp>
#include <cmath>
#include <filesystem>
#include <limits>
#include <optional>
#include <vector>

#include "apps/vitrail/embed/embedding_info.h"
#include "apps/vitrail/input/path_list.h"
#include "apps/vitrail/output/npz_file.h"
#include "apps/vitrail/output/output.h"
#include "vitrail/base/atomic_file.h"
#include "vitrail/base/csv.h"
#include "vitrail/base/error.h"
#include "vitrail/base/npy.h"

namespace vitrail::app {
namespace {

constexpr const char* kStandardOutput = "/dev/stdout";

std::string list_line(const std::string& path, const std::string&) { return path_line(path) + "\n"; }

void check_shape(const Tensor& row, const Shape& shape) {
  if (!(row.shape() == shape))
    throw Error("embed", "features of shape " + shape.to_string() + " for all images", row.shape().to_string());
}

// Rounding to f16 must not give infinity.
void check_range(const Tensor& row) {
  const float max = 65504;  // the largest finite value in f16
  for (int64_t i = 0; i < row.numel(); ++i) {
    const float value = row.data<float>()[i];
    if (std::abs(value) > max)
      throw Error("--dtype fp16", str("values up to ", max, " (--normalize, or --dtype fp32)"), str(value));
  }
}

// Features in an array.  Rows of NaN for images that failed before the shape is known are written then.
class ArrayFeatures : public FeatureFile {
 public:
  explicit ArrayFeatures(DType dtype) : dtype_(dtype) {}

  void check(const Tensor& row) const override {
    if (shape_) check_shape(row, *shape_);
    if (dtype_ == DType::f16) check_range(row.contiguous());
  }
  void add(const std::string& path, const Tensor& row) override {
    if (!shape_) begin(row.shape());
    check(row);
    const Tensor values = row.contiguous();
    write_row(values.data<float>());
    add_path(path, "");
  }
  void add_failure(const std::string& path, const std::string& error) override {
    if (shape_) {
      write_row(nan_row_.data());
    } else {
      ++leading_failures_;
    }
    add_path(path, error);
  }
  void finish(const std::function<Shape()>& shape, const std::string& info) override {
    if (!shape_) begin(shape());
    finish_files(info);
  }

 protected:
  virtual void begin_rows(std::span<const int64_t> row_shape) = 0;
  virtual void write_row(const float* values) = 0;
  virtual void add_path(const std::string& path, const std::string& error) = 0;
  virtual void finish_files(const std::string& info) = 0;

 private:
  void begin(const Shape& shape) {
    shape_ = shape;
    begin_rows(std::span(shape.begin(), static_cast<size_t>(shape.rank())));
    nan_row_.assign(static_cast<size_t>(shape.numel()), std::numeric_limits<float>::quiet_NaN());
    for (; leading_failures_ > 0; --leading_failures_) write_row(nan_row_.data());
  }

  DType dtype_;
  std::optional<Shape> shape_;
  std::vector<float> nan_row_;
  size_t leading_failures_ = 0;
};

// An array, and the list of the paths.
class NpyFeatures : public ArrayFeatures {
 public:
  NpyFeatures(const std::string& path, DType dtype, ListLine line)
      : ArrayFeatures(dtype), features_(path, dtype), line_(std::move(line)) {}
  void write_list_to(const std::filesystem::path& path) { list_.emplace(path); }
  void write_info_to(const std::filesystem::path& path) { info_.emplace(path); }

 protected:
  void begin_rows(std::span<const int64_t> row_shape) override { features_.begin(row_shape); }
  void write_row(const float* values) override { features_.write_rows(values, 1); }
  void add_path(const std::string& path, const std::string& error) override {
    if (list_) list_->write(line_(path, error));
  }
  void finish_files(const std::string& info) override {
    if (info.empty()) info_.reset();
    if (info_) info_->write(info);
    std::vector<AtomicFile*> companions;
    for (std::optional<AtomicFile>* file : {&list_, &info_}) {
      if (*file) companions.push_back(&**file);
    }
    features_.finish(companions);
  }

 private:
  NpyWriter features_;
  ListLine line_;
  std::optional<AtomicFile> list_, info_;
};

// The arrays `features` and `paths` in one file.
class NpzFeatures : public ArrayFeatures {
 public:
  NpzFeatures(const std::string& path, DType dtype) : ArrayFeatures(dtype), file_(path, dtype) {}

 protected:
  void begin_rows(std::span<const int64_t> row_shape) override { file_.begin(row_shape); }
  void write_row(const float* values) override { file_.write_row(values); }
  void add_path(const std::string& path, const std::string&) override { paths_.push_back(path); }
  void finish_files(const std::string&) override { file_.finish(paths_); }

 private:
  NpzFile file_;
  std::vector<std::string> paths_;
};

// The columns path, f0, f1, …, error.  Several tokens follow each other in a row.
class CsvFeatures : public FeatureFile {
 public:
  explicit CsvFeatures(const std::string& path) : file_(path) {}

  void check(const Tensor& row) const override {
    if (shape_) check_shape(row, *shape_);
  }
  void add(const std::string& path, const Tensor& row) override {
    if (!shape_) begin(row.shape());
    check(row);
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
  void finish(const std::function<Shape()>& shape, const std::string&) override {
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

std::unique_ptr<FeatureFile> make_npy_features(const std::string& array, const std::string& list, ListLine line,
                                               DType dtype) {
  auto features = std::make_unique<NpyFeatures>(array, dtype, std::move(line));
  features->write_list_to(list);
  return features;
}

std::unique_ptr<FeatureFile> make_feature_file(const std::string& output, DType dtype, bool with_record) {
  const std::string path = output == "-" ? kStandardOutput : output;
  const std::string extension = std::filesystem::path(path).extension().string();
  if (extension == ".csv" && dtype != DType::f32)
    throw CLI::ValidationError("--dtype", "fp16 is for FILE.npy and FILE.npz");
  if (extension == ".csv") return std::make_unique<CsvFeatures>(path);
  if (extension == ".npz") return std::make_unique<NpzFeatures>(path, dtype);
  const bool is_device = path.starts_with("/dev/");  // a stream has no files beside it
  if (extension != ".npy" && !is_device)
    throw CLI::ValidationError("-o", "expected FILE.npy, FILE.npz, FILE.csv or -, got " + output);
  auto features = std::make_unique<NpyFeatures>(path, dtype, list_line);
  if (is_device) return features;
  const auto list = std::filesystem::path(path).replace_extension(".txt");
  features->write_list_to(list);
  if (with_record) features->write_info_to(info_path(path));
  return features;
}

}  // namespace vitrail::app
