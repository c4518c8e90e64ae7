// SPDX-License-Identifier: Apache-2.0
// Fuzzes the files of sets of objects.  The first line names the format: "coco", "voc", "yaml", or "yolo" for labels.
// Every input must give objects or a vitrail::Error, and each object a class of its set.
#include "fuzz/inputs.h"
#include "vitrail/data/objects/object_reader_internal.h"
#include "vitrail/data/objects/yaml_internal.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace vitrail;
  constexpr int64_t kClasses = 3, kPoints = 2;
  std::string_view text = fuzz::text_of(data, size);
  const std::string format = fuzz::cut(text, '\n'), content(text);
  const auto check = [](const std::vector<data::LabelledObject>& objects, int64_t classes) {
    for (const data::LabelledObject& object : objects) {
      if (object.index < 0 || object.index >= classes) std::abort();
    }
  };
  fuzz::attempt([&] {
    if (format == "coco") {
      const data::ObjectSet set = data::parse_coco_objects(content, "fuzz");
      for (const data::LabelledImage& image : set.images) check(image.objects, std::ssize(set.class_names));
    } else if (format == "voc") {
      const data::VocImage image = data::parse_voc(content, "fuzz");
      if (image.names.size() != image.image.objects.size()) std::abort();
    } else if (format == "yaml") {
      data::parse_yaml(content, "fuzz");
    } else {
      check(data::parse_yolo_labels(content, "fuzz", kClasses, {}), kClasses);
      check(data::parse_yolo_labels(content, "fuzz", kClasses, {kPoints, 3}), kClasses);
    }
  });
  return 0;
}
