// SPDX-License-Identifier: Apache-2.0
#include "vitrail/data/batch_builder_internal.h"

#include <cstring>
#include <numeric>

#include "vitrail/base/error.h"
#include "vitrail/base/random.h"
#include "vitrail/data/auto_augment_policies_internal.h"
#include "vitrail/data/loader_checks_internal.h"

namespace vitrail::data {
namespace {

constexpr int64_t kPairsPerPiece = 4;  // few enough for several threads on one batch, enough to make locking cheap
constexpr int kReplacements = 100;     // draws for a readable sample before the dataset counts as unreadable

}  // namespace

struct BatchBuilder::Source {
  int64_t sample = -1;
  image::Image image;
};

BatchBuilder::BatchBuilder(std::shared_ptr<const Dataset> dataset, LoaderOptions options)
    : dataset_(std::move(dataset)), options_(std::move(options)), samples_(options_.subset) {
  check(options_);
  if (samples_.empty()) {
    samples_.resize(static_cast<size_t>(dataset_->size()));
    std::iota(samples_.begin(), samples_.end(), 0);
  }
  check(options_, samples_, *dataset_);
  if (options_.augment) augmentation_.emplace(*options_.augment, options_.transform);
  // A processor may keep the aspect ratio; then every picture has to come out like a square one.
  size_ = output_size(options_.transform, 64, 64);
}

int64_t BatchBuilder::steps() const {
  const int64_t count = static_cast<int64_t>(samples_.size()), batch = options_.batch_size * options_.ranks;
  return options_.drop_last ? count / batch : (count + batch - 1) / batch;
}

int64_t BatchBuilder::pieces() const {
  return std::max<int64_t>(1, (options_.batch_size / 2 + kPairsPerPiece - 1) / kPairsPerPiece);
}

std::shared_ptr<BatchPieces> BatchBuilder::begin(int64_t epoch, int64_t step) const {
  const int64_t batch = options_.batch_size * options_.ranks;
  const int64_t total = std::min(batch, static_cast<int64_t>(samples_.size()) - step * batch);
  auto pieces = std::make_shared<BatchPieces>();
  pieces->epoch = epoch, pieces->step = step;
  pieces->share = share_of(total, options_.rank, options_.ranks);
  const int64_t b = pieces->share.size();
  pieces->batch.images = Tensor::empty({b, options_.channels, size_[0], size_[1]});
  pieces->batch.labels = Tensor::empty({b}, DType::i64);
  if (options_.augment && !options_.mix.active(epoch)) pieces->batch.view = options_.augment->view_of(epoch);
  if (options_.mix.active(epoch)) pieces->batch.targets = Tensor::empty({b, options_.mix.classes});
  pieces->batch.samples.resize(static_cast<size_t>(b));
  for (int64_t i = 0; i < b; ++i) pieces->batch.positions.push_back(pieces->share.place(i));
  pieces->left_out.resize(static_cast<size_t>(b));
  pieces->skipped.resize(static_cast<size_t>(this->pieces()));
  pieces->failures.resize(static_cast<size_t>(this->pieces()));
  return pieces;
}

void BatchBuilder::make(BatchPieces& batch, int64_t piece, const std::vector<int64_t>& order) const {
  try {
    make_pairs(batch, piece, order);
  } catch (...) {
    batch.failures[piece] = std::current_exception();
  }
}

// Both pictures of a pair are made in the same piece, so that they can be mixed at once.
void BatchBuilder::make_pairs(BatchPieces& batch, int64_t piece, const std::vector<int64_t>& order) const {
  const StepShare& share = batch.share;
  Source front, back;
  const int64_t end = std::min((piece + 1) * kPairsPerPiece, share.pairs);
  for (int64_t i = piece * kPairsPerPiece; i < end; ++i) {
    const int64_t partner = share.size() - 1 - i;
    make_place(batch, i, piece, order, front);
    make_place(batch, partner, piece, order, back);
    if (options_.mix.active(batch.epoch)) mix(batch, i, partner);
  }
  const bool last = piece == pieces() - 1;
  if (!share.middle || !last) return;
  make_place(batch, share.pairs, piece, order, front);
  if (options_.mix.active(batch.epoch)) mix(batch, share.pairs, share.pairs);
}

void BatchBuilder::make_place(BatchPieces& batch, int64_t i, int64_t piece, const std::vector<int64_t>& order,
                              Source& source) const {
  const int64_t place = batch.step * options_.batch_size * options_.ranks + batch.share.place(i);
  const int64_t asked = order[place / options_.repeats];
  if (!read(batch, place, piece, order, source)) {
    batch.left_out[i] = 1;
    return;
  }
  const int64_t sample = source.sample;
  const image::Image& image = source.image;
  if (image.channels != options_.channels) {
    throw Error("loader.channels", str(options_.channels, " in ", dataset_->path(sample)), str(image.channels));
  }
  batch.batch.samples[i] = sample;
  batch.batch.labels.data<int64_t>()[i] = dataset_->label(sample);
  float* out = batch.batch.images.data<float>() + i * options_.channels * size_[0] * size_[1];
  if (augmentation_) {
    // A replacement must not look like the same sample in its own place.
    const int64_t repeat = sample == asked ? place % options_.repeats : options_.repeats;
    augmentation_->apply_into(image, {options_.seed, batch.epoch, sample, repeat}, out);
    return;
  }
  const std::array<int64_t, 2> size = output_size(options_.transform, image.width, image.height);
  if (size != size_) {
    throw Error("loader.transform", str("pictures that all become ", size_[1], "×", size_[0]),
                str(size[1], "×", size[0], " for ", dataset_->path(sample)));
  }
  apply_into(image, options_.transform, out);
}

// The picture of a place or its replacement; false: left out.
bool BatchBuilder::read(BatchPieces& batch, int64_t place, int64_t piece, const std::vector<int64_t>& order,
                        Source& source) const {
  const int64_t sample = order[place / options_.repeats];
  if (decode(sample, source)) return true;
  batch.skipped[piece].push_back(sample);
  if (options_.unreadable == Unreadable::leave_out) return false;
  RandomStream random(random_key("replace", random_key("epoch", options_.seed, static_cast<uint64_t>(batch.epoch)),
                                 static_cast<uint64_t>(place)));
  for (int i = 0; i < kReplacements; ++i) {
    if (decode(order[below(random, static_cast<int64_t>(order.size()))], source)) return true;
  }
  throw Error("loader", str("a readable picture in place of ", dataset_->path(sample)),
              str("none in ", kReplacements, " draws"));
}

bool BatchBuilder::decode(int64_t sample, Source& source) const {
  if (source.sample == sample) return true;
  source.sample = -1;
  try {
    source.image = dataset_->image(sample);
  } catch (const Error&) {
    if (options_.unreadable == Unreadable::error) throw;
    return false;
  }
  source.sample = sample;
  return true;
}

void BatchBuilder::mix(BatchPieces& batch, int64_t i, int64_t partner) const {
  const auto draw = [&](int64_t local) {
    return draw_mixup(options_.mix, options_.seed, batch.epoch, batch.step, batch.share.place(local), size_[0],
                      size_[1]);
  };
  const MixupParams own = draw(i), other = draw(partner);
  const int64_t size = options_.channels * size_[0] * size_[1], classes = options_.mix.classes;
  float* images = batch.batch.images.data<float>();
  mix_pair(own, other, options_.channels, size_[0], size_[1], images + i * size, images + partner * size);
  const int64_t* labels = batch.batch.labels.data<int64_t>();
  float* targets = batch.batch.targets.data<float>();
  mixup_target(options_.mix, own.lambda, labels[i], labels[partner], targets + i * classes);
  mixup_target(options_.mix, other.lambda, labels[partner], labels[i], targets + partner * classes);
}

Batch BatchBuilder::finish(BatchPieces& pieces) const {
  for (const std::exception_ptr& failure : pieces.failures) {
    if (failure) std::rethrow_exception(failure);
  }
  Batch batch = std::move(pieces.batch);
  for (const std::vector<int64_t>& skipped : pieces.skipped) {
    batch.skipped.insert(batch.skipped.end(), skipped.begin(), skipped.end());
  }
  const int64_t picture = options_.channels * size_[0] * size_[1];
  int64_t kept = 0;
  for (int64_t i = 0; i < pieces.share.size(); ++i) {
    if (pieces.left_out[i] != 0) continue;
    if (kept != i) {
      float* images = batch.images.data<float>();
      std::memcpy(images + kept * picture, images + i * picture, static_cast<size_t>(picture) * sizeof(float));
      batch.labels.data<int64_t>()[kept] = batch.labels.data<int64_t>()[i];
      batch.samples[kept] = batch.samples[i];
      batch.positions[kept] = batch.positions[i];
    }
    ++kept;
  }
  if (kept == pieces.share.size()) return batch;
  batch.images = batch.images.narrow(0, 0, kept);
  batch.labels = batch.labels.narrow(0, 0, kept);
  batch.samples.resize(static_cast<size_t>(kept));
  batch.positions.resize(static_cast<size_t>(kept));
  return batch;
}

}  // namespace vitrail::data
