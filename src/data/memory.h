#pragma once
// Samples that the calling program holds: arrays in its own memory, or a data set that it computes itself. They come
// with the data places (data/open.h) and have the kind "memory". A recipe cannot name memory, so its [data] describes
// the samples instead (fields, classes, how many, hashes): a run can be opened later, when they are gone, to predict
// with; whoever then asks for a sample is told that it is not there.

#include <map>
#include <memory>
#include <span>
#include <string>

#include "data/files/source.h"
#include "data/kinds.h"

namespace echelon::data {

// The bytes where they lie, without a copy. `keeper` holds them for as long as the source is used.
SourcePtr borrowed_source(std::string name, std::span<const std::byte> bytes, std::shared_ptr<const void> keeper);

// The [data] table of these parts. BadInput if there is no part "train", or if parts have different fields.
Options describe_memory(const MemoryParts& parts);

// Reads such a table. What it opens are the parts that were handed over, where there are any; else data sets that have
// everything but samples. A part that is described and handed over must have the described hash.
OpenSplit read_memory_kind(OptionReader& table, const MemoryParts& parts);

}  // namespace echelon::data
