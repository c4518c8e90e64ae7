// SPDX-License-Identifier: Apache-2.0
// Sets of objects in Pascal VOC's XML (Everingham et al. 2010, development kit, "Annotation").
#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <set>

#include "vitrail/base/error.h"
#include "vitrail/base/read_file.h"
#include "vitrail/data/datasets/input_paths.h"
#include "vitrail/data/datasets/natural_order_internal.h"
#include "vitrail/data/datasets/splits_internal.h"
#include "vitrail/data/objects/object_reader_internal.h"
#include "vitrail/data/objects/xml_internal.h"

namespace vitrail::data {
namespace {

namespace fs = std::filesystem;

const XmlElement& child_of(const XmlElement& element, const char* name, const std::string& where) {
  if (const XmlElement* const child = element.child(name)) return *child;
  throw Error(str(where, ":", element.line), str("<", name, "> in <", element.name, ">"), "none");
}

double xml_number(const XmlElement& element, const char* name, const std::string& where) {
  const XmlElement& child = child_of(element, name, where);
  double value = 0;
  const char* const end = child.text.data() + child.text.size();
  const auto [next, error] = std::from_chars(child.text.data(), end, value);
  if (error != std::errc() || next != end || !std::isfinite(value))
    throw Error(str(where, ":", child.line, ": ", name), "a number", "'" + child.text.substr(0, 60) + "'");
  return value;
}

// Coordinates are pixels that are counted from 1, both ends included.
LabelledObject voc_object(const XmlElement& element, const std::string& where) {
  const XmlElement& box = child_of(element, "bndbox", where);
  LabelledObject object{.box = {xml_number(box, "xmin", where) - 1, xml_number(box, "ymin", where) - 1,
                                xml_number(box, "xmax", where), xml_number(box, "ymax", where)}};
  object.area = (object.box[2] - object.box[0]) * (object.box[3] - object.box[1]);
  const XmlElement* const difficult = element.child("difficult");
  object.difficult = difficult != nullptr && difficult->text == "1";
  return object;
}

struct VocFile {
  fs::path annotation, images;  // a file, and the folder of the images
  std::string split;
};

// The images of a folder by their names without extension.
std::map<std::string, std::string> images_by_stem(const fs::path& folder) {
  std::map<std::string, std::string> images;
  std::error_code error;
  if (!fs::is_directory(folder, error)) return images;
  for (const std::string& path : list_images(folder)) images.emplace(fs::path(path).stem().string(), path);
  return images;
}

class VocReader : public ObjectReader {
 public:
  explicit VocReader(const fs::path& folder) : folder_(folder) {
    add_files(folder / "Annotations", folder / "JPEGImages", "");
    if (!files_.empty()) {
      for (const fs::path& list : files_with_ending(folder / "ImageSets" / "Main", ".txt")) {
        const std::string name = list.stem().string();
        if (name == "trainval" || !canonical_split(name).empty()) lists_.push_back({name, list});
      }
      return;
    }
    add_files(folder, folder, "");
    if (!files_.empty()) return;
    std::error_code error;
    for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
      const std::string name = entry->path().filename().string();
      if (!canonical_split(name).empty() && entry->is_directory(error)) add_files(entry->path(), entry->path(), name);
    }
  }

  bool empty() const { return files_.empty(); }

  std::vector<std::string> splits() const override {
    std::set<std::string> names;
    for (const SplitFile& list : lists_) names.insert(list.split);
    for (const VocFile& file : files_) {
      if (!file.split.empty()) names.insert(file.split);
    }
    return {names.begin(), names.end()};
  }

  ObjectSet read(const std::string& split, const ObjectSetOptions& options) const override {
    ObjectSet set{.form = "Pascal VOC", .where = folder_.string()};
    const std::set<std::string> listed = names_in_list(split);
    std::map<std::string, int64_t, NaturalLess> index_of;  // the classes of all splits, so that these share them
    std::vector<std::vector<std::string>> names;           // names of the objects in each image
    std::map<fs::path, std::map<std::string, std::string>> images;
    for (const VocFile& file : files_) {
      VocImage voc = parse_voc(read_text_file(file.annotation), file.annotation.string());
      for (const std::string& name : voc.names) index_of.emplace(name, 0);
      const std::string stem = file.annotation.stem().string();
      if (split.empty() ? false : lists_.empty() ? file.split != split : !listed.contains(stem)) continue;
      auto [folder, is_new] = images.try_emplace(file.images);
      if (is_new && !options.without_images) folder->second = images_by_stem(file.images);
      const auto found = folder->second.find(stem);
      voc.image.path = found != folder->second.end() ? found->second
                       : voc.file_name.empty()       ? (file.images / (stem + ".jpg")).string()
                                                     : (file.images / voc.file_name).string();
      set.images.push_back(std::move(voc.image));
      names.push_back(std::move(voc.names));
    }
    for (auto& [name, index] : index_of) {
      index = std::ssize(set.class_names);
      set.class_names.push_back(name);
    }
    for (size_t i = 0; i < names.size(); ++i) {
      for (size_t k = 0; k < names[i].size(); ++k) set.images[i].objects[k].index = index_of.at(names[i][k]);
    }
    return set;
  }

 private:
  void add_files(const fs::path& annotations, const fs::path& images, const std::string& split) {
    for (const fs::path& file : files_with_ending(annotations, ".xml")) files_.push_back({file, images, split});
  }

  std::set<std::string> names_in_list(const std::string& split) const {
    std::set<std::string> names;
    const auto list = std::ranges::find(lists_, split, &SplitFile::split);
    if (list == lists_.end()) return names;
    std::set<std::string> known;
    for (const VocFile& file : files_) known.insert(file.annotation.stem().string());
    std::istringstream lines(read_text_file(list->path));
    for (std::string line; std::getline(lines, line);) {
      const std::string name = line.substr(0, line.find_first_of(" \t\r"));
      if (name.empty()) continue;
      if (!known.contains(name)) throw Error(list->path.string(), "names of annotations", "'" + name + "'");
      names.insert(name);
    }
    return names;
  }

  fs::path folder_;
  std::vector<VocFile> files_;
  std::vector<SplitFile> lists_;
};

}  // namespace

VocImage parse_voc(const std::string& text, const std::string& where) {
  const XmlElement root = parse_xml(text, where);
  if (root.name != "annotation") throw Error(where, "<annotation>, as Pascal VOC has it", "<" + root.name + ">");
  VocImage result;
  if (const XmlElement* const name = root.child("filename"))
    result.file_name = fs::path(name->text).filename().string();
  if (const XmlElement* const size = root.child("size")) {
    constexpr double kMaxSide = 1 << 20;
    const double width = xml_number(*size, "width", where), height = xml_number(*size, "height", where);
    const bool is_known = width > 0 && height > 0 && width <= kMaxSide && height <= kMaxSide;  // some programs write 0
    if (is_known) {
      result.image.width = static_cast<int64_t>(width);
      result.image.height = static_cast<int64_t>(height);
    }
  }
  for (const XmlElement& element : root.children) {
    if (element.name != "object") continue;
    const XmlElement& name = child_of(element, "name", where);
    if (name.text.empty()) throw Error(str(where, ":", name.line), "the name of a class", "none");
    result.names.push_back(name.text);
    result.image.objects.push_back(voc_object(element, where));
    result.image.objects.back().id = std::ssize(result.names);
  }
  return result;
}

ObjectReaderPtr voc_reader(const fs::path& path) {
  auto reader = std::make_unique<VocReader>(path);
  return reader->empty() ? nullptr : std::move(reader);
}

}  // namespace vitrail::data
