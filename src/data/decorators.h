#pragma once
// Data sets made from other data sets. Each takes over what it decorates and is a data set itself: thread-safe, pure,
// and the samples stay what they were unless the text says otherwise. (Changing samples is data/images/transform.h.)

#include <memory>
#include <vector>

#include "data/dataset.h"

namespace echelon::data {

using DatasetPtr = std::shared_ptr<const Dataset>;

// In an order that is a pure function of (seed, epoch): position i of an epoch is sample Permutation(seed, epoch)(i).
DatasetPtr shuffled(DatasetPtr inner);

// `count` samples from `first` on.
DatasetPtr subset(DatasetPtr inner, std::uint64_t first, std::uint64_t count);

// One after the other. The fields must be the same.
DatasetPtr concatenated(std::vector<DatasetPtr> parts);

// A fixed, random part: the train part has the first (1 - fraction) of one fixed shuffling, the other part the rest.
// The same split whatever the seed of the run.
DatasetPtr held_out(DatasetPtr inner, double fraction, bool train);

// Keeps every sample in memory once it was asked for. The inner data set must not be random (put augmentation above the
// cache). BadInput, with the size, if it would need more than `memory_limit` bytes.
DatasetPtr cached(DatasetPtr inner, std::uint64_t memory_limit);

// Mixup (Zhang et al. 2018): each sample is mixed with a random one, numbers by a share from a beta distribution with
// both parameters `alpha`. A class is not mixed: it is one of the two, drawn with the same share, so that the loss is
// that of mixup on average. BadInput for samples with ids that are not a class.
DatasetPtr mixed_up(DatasetPtr inner, double alpha);

}  // namespace echelon::data
