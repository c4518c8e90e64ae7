// SPDX-License-Identifier: Apache-2.0
#include "vitrail/data/loader/batch_builder_internal.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <numeric>

#include "vitrail/base/error.h"
#include "vitrail/base/random.h"
#include "vitrail/base/round_up_internal.h"
#include "vitrail/data/augment/random_draws_internal.h"
#include "vitrail/data/loader/loader_checks_internal.h"
#include "vitrail/image/decode_memory.h"

namespace vitrail::data {
namespace {

constexpr int64_t kPairsPerChunk = 4;      // small: several threads share a batch; large enough to make locking cheap
constexpr int kMaxReplacementDraws = 100;  // after so many unreadable samples the dataset counts as unreadable

// Keeps the rows `kept`, in increasing order, of each of `blocks` equal parts of a contiguous tensor.
void keep_rows(Tensor& rows, int64_t blocks, const std::vector<int64_t>& kept) {
  if (!rows.defined() || rows.numel() == 0) return;
  const int64_t per_block = rows.size(0) / blocks, count = static_cast<int64_t>(kept.size());
  const size_t bytes = static_cast<size_t>(rows.numel() / rows.size(0)) * size_of(rows.dtype());
  std::byte* const data = rows.raw();
  for (int64_t row = 0; row < blocks * count; ++row) {
    const int64_t from = row / count * per_block + kept[row % count];
    std::memmove(data + static_cast<size_t>(row) * bytes, data + static_cast<size_t>(from) * bytes, bytes);
  }
  rows = rows.narrow(0, 0, blocks * count);
}

}  // namespace

struct BatchBuilder::Source {
  int64_t sample = -1;
  image::Image image;
  std::string failure;  // why the last sample could not be read
};

BatchBuilder::BatchBuilder(std::shared_ptr<const Dataset> dataset, LoaderOptions options)
    : dataset_(std::move(dataset)), options_(std::move(options)), samples_(options_.subset) {
  check(options_);
  if (samples_.empty()) {
    samples_.resize(static_cast<size_t>(dataset_->size()));
    std::iota(samples_.begin(), samples_.end(), 0);
  }
  check(options_, samples_, *dataset_);
  if (options_.balance) {
    std::map<int64_t, std::vector<int64_t>> classes;
    for (const int64_t sample : samples_) classes[dataset_->label(sample)].push_back(sample);
    for (auto& [label, members] : classes) classes_.push_back(std::move(members));
  }
  if (options_.augment) augmentation_.emplace(*options_.augment, options_.transform);
  int64_t view = 0;
  for (const ViewGroup& group : options_.views) {
    image::EvalTransform transform = options_.transform;
    transform.size = group.size;
    views_.push_back({view, group.count, group.size, Augmentation(group.augment, transform)});
    view += group.count;
  }
  // A Hugging Face processor may keep the aspect ratio.  Then every image must give the size that a square one gives.
  size_ = output_size(options_.transform, 64, 64);
}

int64_t BatchBuilder::steps() const {
  const int64_t count = static_cast<int64_t>(samples_.size()), batch = options_.batch_size * options_.ranks;
  return options_.drop_last ? count / batch : ceil_div(count, batch);
}

int64_t BatchBuilder::chunks() const { return std::max<int64_t>(1, ceil_div(options_.batch_size / 2, kPairsPerChunk)); }

std::shared_ptr<UnfinishedBatch> BatchBuilder::begin(int64_t epoch, int64_t step) const {
  const int64_t batch = options_.batch_size * options_.ranks;
  const int64_t total = std::min(batch, static_cast<int64_t>(samples_.size()) - step * batch);
  auto unfinished = std::make_shared<UnfinishedBatch>();
  unfinished->epoch = epoch, unfinished->step = step;
  unfinished->slice = rank_slice(total, options_.rank, options_.ranks);
  const int64_t b = unfinished->slice.size();
  if (views_.empty()) unfinished->batch.images = Tensor::empty({b, options_.channels, size_[0], size_[1]});
  for (const Views& group : views_) {
    const Shape shape{group.count * b, options_.channels, group.size[0], group.size[1]};
    unfinished->batch.views.push_back(Tensor::empty(shape));
  }
  unfinished->batch.labels = Tensor::empty({b}, DType::i64);
  if (options_.augment && !options_.mix.active(epoch)) unfinished->batch.view = options_.augment->view_of(epoch);
  if (options_.mix.active(epoch)) unfinished->batch.targets = Tensor::empty({b, options_.mix.classes});
  if (dataset_->is_multi_label()) unfinished->batch.targets = Tensor::zeros({b, options_.classes});
  unfinished->batch.samples.resize(static_cast<size_t>(b));
  for (int64_t i = 0; i < b; ++i) unfinished->batch.positions.push_back(unfinished->slice.position(i));
  unfinished->omitted.resize(static_cast<size_t>(b));
  unfinished->skipped.resize(static_cast<size_t>(chunks()));
  unfinished->failures.resize(static_cast<size_t>(chunks()));
  return unfinished;
}

std::vector<int64_t> BatchBuilder::order(int64_t epoch) const {
  if (options_.balance && options_.shuffle)
    return balanced_order(classes_, static_cast<int64_t>(samples_.size()), options_.seed, epoch);
  return epoch_order(samples_, options_.shuffle, options_.seed, epoch);
}

void BatchBuilder::build(UnfinishedBatch& batch, int64_t chunk, const std::vector<int64_t>& order) const {
  try {
    build_pairs(batch, chunk, order);
  } catch (...) {
    batch.failures[chunk] = std::current_exception();
  }
}

// Both images of a mixup pair belong to the same chunk.
void BatchBuilder::build_pairs(UnfinishedBatch& batch, int64_t chunk, const std::vector<int64_t>& order) const {
  const RankSlice& slice = batch.slice;
  Source front, back;
  const int64_t end = std::min((chunk + 1) * kPairsPerChunk, slice.pairs);
  for (int64_t i = chunk * kPairsPerChunk; i < end; ++i) {
    const int64_t partner = slice.size() - 1 - i;
    build_image(batch, i, chunk, order, front);
    build_image(batch, partner, chunk, order, back);
    if (options_.mix.active(batch.epoch)) mix(batch, i, partner);
  }
  const bool last = chunk == chunks() - 1;
  if (!slice.has_middle || !last) return;
  build_image(batch, slice.pairs, chunk, order, front);
  if (options_.mix.active(batch.epoch)) mix(batch, slice.pairs, slice.pairs);
}

void BatchBuilder::build_image(UnfinishedBatch& batch, int64_t i, int64_t chunk, const std::vector<int64_t>& order,
                               Source& source) const {
  const int64_t position = batch.step * options_.batch_size * options_.ranks + batch.slice.position(i);
  const int64_t requested = order[position / options_.repeats];
  if (options_.repeats == 1) source = {};  // its memory is no longer reserved
  const image::DecodeMemoryScope memory;
  if (!read(batch, position, chunk, order, source)) {
    batch.omitted[i] = 1;
    return;
  }
  const int64_t sample = source.sample;
  const image::Image& image = source.image;
  if (image.channels != options_.channels) {
    throw Error("loader.channels", str(options_.channels, " in ", dataset_->path(sample)), str(image.channels));
  }
  batch.batch.samples[i] = sample;
  set_labels(batch.batch, i, sample);
  // A replacement gets other draws than the same sample at its own position.
  int64_t repeat = sample == requested ? position % options_.repeats : options_.repeats;
  if (options_.balance) repeat = position;  // an epoch may have a sample several times
  const AugmentKey key{options_.seed, batch.epoch, sample, repeat};
  if (!views_.empty()) return write_views(batch.batch, i, image, key);
  float* out = batch.batch.images.data<float>() + i * options_.channels * size_[0] * size_[1];
  if (augmentation_) return augmentation_->apply_into(image, key, out);
  const std::array<int64_t, 2> size = output_size(options_.transform, image.width, image.height);
  if (size != size_) {
    throw Error("loader.transform", str("images that all become ", size_[1], "×", size_[0]),
                str(size[1], "×", size[0], " for ", dataset_->path(sample)));
  }
  apply_into(image, options_.transform, out);
}

void BatchBuilder::write_views(Batch& batch, int64_t i, const image::Image& image, AugmentKey key) const {
  const auto images = static_cast<int64_t>(batch.samples.size());
  for (size_t group = 0; group < views_.size(); ++group) {
    const auto& [first, count, size, augmentation] = views_[group];
    const int64_t elements = options_.channels * size[0] * size[1];
    for (int64_t v = 0; v < count; ++v) {
      key.view = first + v;
      augmentation.apply_into(image, key, batch.views[group].data<float>() + (v * images + i) * elements);
    }
  }
}

void BatchBuilder::set_labels(Batch& batch, int64_t i, int64_t sample) const {
  int64_t& label = batch.labels.data<int64_t>()[i];
  if (!dataset_->is_multi_label()) {
    label = dataset_->label(sample);
    return;
  }
  label = -1;
  float* targets = batch.targets.data<float>() + i * options_.classes;
  for (const int64_t each : dataset_->labels(sample)) targets[each] = 1;
}

// Reads the image of a position or a replacement; returns false if it is omitted.
bool BatchBuilder::read(UnfinishedBatch& batch, int64_t position, int64_t chunk, const std::vector<int64_t>& order,
                        Source& source) const {
  const int64_t sample = order[position / options_.repeats];
  if (decode(sample, source)) return true;
  const std::string failure = source.failure;
  batch.skipped[chunk].push_back(sample);
  if (options_.unreadable == Unreadable::leave_out) return false;
  RandomStream random(random_key("replace", random_key("epoch", options_.seed, static_cast<uint64_t>(batch.epoch)),
                                 static_cast<uint64_t>(position)));
  for (int i = 0; i < kMaxReplacementDraws; ++i) {
    if (decode(order[random_index(random, static_cast<int64_t>(order.size()))], source)) return true;
  }
  throw Error("loader", str("a readable image to replace ", dataset_->path(sample)),
              str("none in ", kMaxReplacementDraws, " draws (", failure, ")"));
}

bool BatchBuilder::decode(int64_t sample, Source& source) const {
  if (source.sample == sample) return true;
  source.sample = -1;
  try {
    source.image = dataset_->image(sample);
  } catch (const Error& error) {
    if (options_.unreadable == Unreadable::error) throw;
    source.failure = error.what();
    return false;
  }
  source.sample = sample;
  return true;
}

void BatchBuilder::mix(UnfinishedBatch& batch, int64_t i, int64_t partner) const {
  const auto draw = [&](int64_t index) {
    return draw_mixup(options_.mix, options_.seed, batch.epoch, batch.step, batch.slice.position(index), size_[0],
                      size_[1]);
  };
  const MixupParams own_params = draw(i), partner_params = draw(partner);
  const int64_t size = options_.channels * size_[0] * size_[1], classes = options_.mix.classes;
  float* images = batch.batch.images.data<float>();
  mix_pair(own_params, partner_params, options_.channels, size_[0], size_[1], images + i * size,
           images + partner * size);
  const int64_t* labels = batch.batch.labels.data<int64_t>();
  float* targets = batch.batch.targets.data<float>();
  mixup_target(options_.mix, own_params.lambda, labels[i], labels[partner], targets + i * classes);
  mixup_target(options_.mix, partner_params.lambda, labels[partner], labels[i], targets + partner * classes);
}

Batch BatchBuilder::finish(UnfinishedBatch& unfinished) const {
  for (const std::exception_ptr& failure : unfinished.failures) {
    if (failure) std::rethrow_exception(failure);
  }
  Batch batch = std::move(unfinished.batch);
  for (const std::vector<int64_t>& skipped : unfinished.skipped) {
    batch.skipped.insert(batch.skipped.end(), skipped.begin(), skipped.end());
  }
  std::vector<int64_t> kept;
  for (int64_t i = 0; i < unfinished.slice.size(); ++i) {
    if (unfinished.omitted[i] == 0) kept.push_back(i);
  }
  if (std::ssize(kept) == unfinished.slice.size()) return batch;
  for (Tensor* rows : {&batch.images, &batch.labels, &batch.targets}) keep_rows(*rows, 1, kept);
  for (size_t group = 0; group < views_.size(); ++group) keep_rows(batch.views[group], views_[group].count, kept);
  for (std::vector<int64_t>* values : {&batch.samples, &batch.positions}) {
    for (size_t i = 0; i < kept.size(); ++i) (*values)[i] = (*values)[kept[i]];
    values->resize(kept.size());
  }
  return batch;
}

}  // namespace vitrail::data
