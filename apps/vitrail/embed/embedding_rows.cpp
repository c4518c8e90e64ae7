// SPDX-License-Identifier: Apache-2.0
#include "apps/vitrail/embed/embedding_rows.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "apps/vitrail/input/path_list.h"
#include "vitrail/base/error.h"
#include "vitrail/kernels/rowwise/l2_normalize.h"

namespace vitrail::app {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kRowsPerBlock = 1024;

std::vector<fs::path> arrays_in(const std::string& input) {
  std::error_code error, dangling;
  if (!fs::is_directory(input, error)) return {input};
  std::vector<fs::path> files;
  for (fs::directory_iterator entry(input, error), end; !error && entry != end; entry.increment(error)) {
    if (entry->path().extension() == ".npy" && !entry->is_other(dangling)) files.push_back(entry->path());
  }
  if (error) throw Error(input, "a readable folder", error.message());
  if (files.empty()) throw Error(input, "a folder with arrays of `vitrail embed` (.npy)", "none");
  std::ranges::sort(files);
  return files;
}

// Whether the image of the row failed.  Throws Error for another row that has no direction.
bool is_failed_row(const float* row, int64_t width, const std::string& where) {
  if (std::all_of(row, row + width, [](float value) { return std::isnan(value); })) return true;
  if (!std::all_of(row, row + width, [](float value) { return std::isfinite(value); }))
    throw Error(where, "finite values, or NaN alone for an image that failed", "some values that are not finite");
  if (std::all_of(row, row + width, [](float value) { return value == 0; }))
    throw Error(where, "a vector that has a direction", "zeros");
  return false;
}

std::string name_in_record(const std::string& line, const std::string& shard, const std::string& where) {
  try {
    return shard + ":" + nlohmann::json::parse(line).at("file").get<std::string>();
  } catch (const nlohmann::json::exception& error) {
    throw Error(where, "an object with the file's name", error.what());
  }
}

// The paths beside an array, one for each of its rows.
std::vector<std::string> names_of(const fs::path& array, int64_t rows) {
  const fs::path text = fs::path(array).replace_extension(".txt"),
                 records = fs::path(array).replace_extension(".jsonl");
  std::error_code error;
  const bool has_records = fs::exists(records, error);
  const fs::path list = has_records ? records : text;
  std::ifstream in(list);
  if (!in) throw Error(array.string(), "the names of its rows in " + text.string() + " or .jsonl", "none");
  std::vector<std::string> names;
  const std::string shard = array.stem().string() + ".tar";
  for (std::string line; std::getline(in, line);) {
    const std::string where = str(list.string(), ":", names.size() + 1);
    names.push_back(has_records ? name_in_record(line, shard, where) : path_of_line(line));
  }
  if (std::ssize(names) != rows)
    throw Error(list.string(), str(rows, " lines, as the array's rows"), str(names.size()));
  return names;
}

}  // namespace

EmbeddingRows::EmbeddingRows(const std::vector<std::string>& inputs) {
  for (const std::string& input : inputs) {
    for (const fs::path& file : arrays_in(input)) add_file(file);
  }
}

void EmbeddingRows::add_file(const fs::path& file) {
  const NpyRows& array = arrays_.emplace_back(file);
  files_.push_back(file);
  if (array.shape().size() != 2) {
    throw Error(file.string(), "an array [n, D]: a vector for each image",
                str("one of ", array.shape().size(), " axes"));
  }
  const int64_t rows = array.shape()[0], width = array.shape()[1];
  if (width_ == 0) width_ = width;
  if (width != width_ || width == 0)
    throw Error(file.string(), str("vectors of width ", width_, ", as in ", files_.front().string()), str(width));
  std::vector<float> values(static_cast<size_t>(kRowsPerBlock * width));
  for (int64_t begin = 0; begin < rows; begin += kRowsPerBlock) {
    const int64_t count = std::min(kRowsPerBlock, rows - begin);
    array.read(begin, count, values.data());
    for (int64_t r = 0; r < count; ++r) {
      const std::string where = str(file.string(), ", row ", begin + r);
      if (is_failed_row(values.data() + r * width, width, where)) {
        ++failed_;
      } else {
        add_row(files_.size() - 1, begin + r);
      }
    }
  }
}

void EmbeddingRows::add_row(size_t file, int64_t file_row) {
  const bool continues =
      !ranges_.empty() && ranges_.back().file == file && ranges_.back().file_row + ranges_.back().count == file_row;
  if (!continues) ranges_.push_back({file, file_row, count_, 0});
  ++ranges_.back().count;
  ++count_;
}

void EmbeddingRows::read(int64_t first, int64_t count, float* values) const {
  auto range = std::ranges::upper_bound(ranges_, first, {}, &Range::row);
  for (--range; count > 0; ++range) {
    const int64_t skipped = first - range->row, rows = std::min(count, range->count - skipped);
    arrays_[range->file].read(range->file_row + skipped, rows, values);
    for (int64_t r = 0; r < rows; ++r, values += width_) kernels::normalize_row(values, width_);
    first += rows;
    count -= rows;
  }
}

void EmbeddingRows::for_each_name(const std::function<void(const std::string&)>& on_name) const {
  auto range = ranges_.begin();
  for (size_t file = 0; file < files_.size(); ++file) {
    const std::vector<std::string> names = names_of(files_[file], arrays_[file].shape()[0]);
    for (; range != ranges_.end() && range->file == file; ++range) {
      for (int64_t r = 0; r < range->count; ++r) on_name(names[static_cast<size_t>(range->file_row + r)]);
    }
  }
}

}  // namespace vitrail::app
