// SPDX-License-Identifier: Apache-2.0
// A dataset listed in a CSV file with the columns file,class_index.
#include <charconv>
#include <optional>
#include <string_view>

#include "vitrail/base/error.h"
#include "vitrail/base/mapped_file_internal.h"
#include "vitrail/data/content_internal.h"
#include "vitrail/data/csv_internal.h"
#include "vitrail/data/dataset_formats_internal.h"

namespace vitrail::data {
namespace fs = std::filesystem;
namespace {

std::optional<int64_t> integer(std::string_view text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// The positions of the two columns.
struct Columns {
  size_t file = 0, class_index = 1;
};

// The first field of a header is no image path and the second no integer.  If only one of these holds, the row is data
// and its error is reported.
bool is_header(const std::vector<std::string>& fields) {
  return fields.size() >= 2 && !image::is_image_path(fields[0]) && !integer(fields[1]);
}

Columns columns_of(const std::vector<std::string>& header) {
  std::optional<size_t> file, class_index;
  for (size_t i = 0; i < header.size(); ++i) {
    if (header[i] == "file" && !file) file = i;
    if (header[i] == "class_index" && !class_index) class_index = i;
  }
  return file && class_index ? Columns{*file, *class_index} : Columns{};
}

class CsvDataset : public Dataset {
 public:
  CsvDataset(const fs::path& csv, const DatasetOptions& options)
      : where_(csv.string()), folder_(csv.parent_path()), limit_(class_limit(options)), decode_(options.decode) {
    const MappedFile file(csv);
    CsvReader reader(where_, {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()});
    Columns columns;
    bool first = true;
    while (const auto row = reader.next()) {
      if (first && is_header(row->fields)) {
        columns = columns_of(row->fields);
      } else {
        add(*row, columns);
      }
      first = false;
    }
    if (rows_.empty()) throw Error(where_, "rows of file,class_index", "none");
    class_names_ = options.labels;
  }

  int64_t size() const override { return static_cast<int64_t>(rows_.size()); }
  std::string path(int64_t i) const override { return (folder_ / rows_.at(i).file).string(); }
  int64_t label(int64_t i) const override { return rows_.at(i).label; }
  image::Image image(int64_t i) const override { return image::read_image(path(i), decode_); }
  int64_t content_size(int64_t i) const override { return file_size(path(i)); }
  uint64_t content_hash(int64_t i) const override { return hash_of_file(path(i)); }

 private:
  struct Row {
    std::string file;
    int64_t label;
  };

  void add(const CsvRow& row, Columns columns) {
    const std::string row_where = str(where_, ":", row.line);
    if (row.fields.size() <= std::max(columns.file, columns.class_index)) {
      throw Error(row_where, "file,class_index", str(row.fields.size(), " field(s)"));
    }
    const std::string& file = row.fields[columns.file];
    const std::string& index = row.fields[columns.class_index];
    const std::optional<int64_t> label = integer(index);
    if (file.empty()) throw Error(row_where, "a file", "an empty field");
    if (!label) throw Error(row_where, "a class index", "'" + index + "'");
    if (*label < 0) throw Error(row_where, "a class index of at least 0", index);
    if (*label >= limit_) throw Error(row_where, str("a class index below the model's ", limit_, " classes"), index);
    rows_.push_back({file, *label});
  }

  std::string where_;
  fs::path folder_;
  int64_t limit_;
  image::DecodeOptions decode_;
  std::vector<Row> rows_;
};

}  // namespace

std::unique_ptr<Dataset> open_csv(const fs::path& csv, const DatasetOptions& options) {
  require_no_split(csv, options);
  return std::make_unique<CsvDataset>(csv, options);
}

}  // namespace vitrail::data
