// SPDX-License-Identifier: Apache-2.0
#include "apps/vitrail/audit/audited_set.h"

#include <algorithm>
#include <utility>

#include "apps/vitrail/output/output.h"
#include "vitrail/base/error.h"
#include "vitrail/base/text.h"

namespace vitrail::app {
namespace {

// The index of a class among those of all splits.
int64_t class_index(Audit& audit, const std::string& name) {
  const auto index = std::ranges::find(audit.classes, name) - audit.classes.begin();
  if (index == std::ssize(audit.classes)) audit.classes.push_back(name);
  return index;
}

// Runs the model on the images that follow the first `first` ones.
class FeatureReader {
 public:
  FeatureReader(Audit& audit, const Model& model, const AuditedSet& set, const GlobalOptions& global)
      : audit_(audit), model_(model), set_(set), global_(global) {}

  void read(const ImageSource& source, size_t first) {
    const ImageRun run{
        .passes = {model_.request_of({})},
        .input_of = [&](const image::Image& photo) { return image::apply(photo, model_.transform()); },
        .run = [&](const Tensor& inputs, const infer::Request& pass) { return model_.session().run(inputs, pass); },
        .keeps_photo = true};
    run_images(source, run, set_.images.batch, global_, [&](Outcome& outcome) { add(outcome, first + outcome.index); });
  }

  void finish() {
    const auto count = std::ssize(audit_.rows);
    if (count == 0) throw Error(set_.dataset, "images that can be read", "none");
    audit_.features = Tensor::from<float>({count, std::ssize(values_) / count}, values_);
  }

 private:
  void add(Outcome& outcome, size_t index) {
    AuditedImage& image = audit_.images[index];
    image.error = outcome.error;
    if (!outcome.error.empty()) return;
    image.width = outcome.item.width, image.height = outcome.item.height;
    image.luminance = luminance_of(outcome.item.photo);
    outcome.item.photo = {};
    const Tensor row = outcome.result().contiguous();
    values_.insert(values_.end(), row.data<float>(), row.data<float>() + row.numel());
    audit_.rows.push_back(index);
  }

  Audit& audit_;
  const Model& model_;
  const AuditedSet& set_;
  const GlobalOptions& global_;
  std::vector<float> values_;
};

// The images of a split.
void add_split(Audit& audit, const std::shared_ptr<const data::Dataset>& dataset, const std::string& split) {
  const std::vector<std::string>& names = dataset->class_names();
  for (int64_t i = 0; i < dataset->size(); ++i) {
    const int64_t label = dataset->label(i);
    audit.images.push_back(
        {.path = dataset->path(i),
         .split = split,
         .label = class_index(audit, names.empty() ? std::to_string(label) : names[static_cast<size_t>(label)]),
         .content = [=] { return dataset->content_hash(i); },
         .read = [=] { return dataset->image(i); }});
  }
}

ImageSource source_of(const Audit& audit, size_t first) {
  return {audit.images.size() - first, [&audit, first](size_t i) { return audit.images[first + i].path; },
          [&audit, first](size_t i) { return audit.images[first + i].read(); }};
}

void add_labelled(Audit& audit, const AuditedSet& set, const Model& model, const GlobalOptions& global) {
  LabelledSets sets = set.sets;
  data::DatasetOptions options{.multi_label = false};
  options.decode = {.mode = model.color_mode(), .apply_exif = set.images.exif};
  const auto manifest = sets.manifests.get(set.dataset, {.columns = data::parse_columns(sets.columns)});
  const std::vector<std::string> splits = manifest->splits();
  for (const std::string split : {"train", "val", "test", ""}) {  // "": a set without splits
    if (split.empty() ? !splits.empty() : std::ranges::find(splits, split) == splits.end()) continue;
    options.split = split;
    const std::shared_ptr<const data::Dataset> dataset = manifest->open(options);
    if (!global.quiet) print_note("vitrail: auditing " + data::summary(*dataset, set.dataset));
    add_split(audit, dataset, split);
  }
  if (audit.classes.size() < 2)
    throw Error(set.dataset, "images of at least two classes", "one class: " + join(audit.classes));
}

void add_unlabelled(Audit& audit, const AuditedSet& set, const Model& model) {
  const auto inputs = std::make_shared<ImageInputs>(set.unlabelled);
  const image::DecodeOptions decode{.mode = model.color_mode(), .apply_exif = set.images.exif};
  for (size_t i = 0; const auto input = inputs->at(i); ++i)
    audit.images.push_back(
        {.path = input->path, .split = "unlabelled", .read = [=] { return inputs->read(i, decode); }});
}

}  // namespace

Audit read_audited(const AuditedSet& set, const Model& model, const GlobalOptions& global) {
  Audit audit;
  FeatureReader reader(audit, model, set, global);
  add_labelled(audit, set, model, global);
  reader.read(source_of(audit, 0), 0);
  if (!set.unlabelled.empty()) {
    const size_t first = audit.images.size();
    add_unlabelled(audit, set, model);
    reader.read(source_of(audit, first), first);
  }
  reader.finish();
  return audit;
}

}  // namespace vitrail::app
