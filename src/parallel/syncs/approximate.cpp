// The mirror clock of Gaia (Hsieh et al. 2017): inside a site workers are answered at once; but a site whose workers
// are more than `staleness` steps ahead of the slowest site's lets them wait, so that the changes which other sites
// have not sent yet cannot be too many. Which changes travel between sites is the exchange's matter (exchange.sites).

#include "parallel/syncs/syncs.h"

namespace echelon::syncs {

namespace {

class Approximate : public SharingWork {
 public:
  Approximate(std::int64_t staleness, const WorkSharing& work) : SharingWork(work), staleness_(staleness) {}
  SyncTraits traits() const override { return {.per_worker = true}; }
  std::optional<std::int64_t> most_site_lead() const override { return staleness_; }
  void accepts(const Composition& c, const CompositionFacts& facts, Problems& problems) const override {
    SharingWork::accepts(c, facts, problems);
    refuse(problems, !c.exchange->traits().sites,
           fmt::format("sync approximate bounds how far sites with servers of their own are ahead of each "
                       "other, and exchange {} has no sites: take exchange server and set exchange.sites (0: "
                       "every host is one), or take sync async",
                       c.exchange_name));
  }

  std::vector<Figure> figures(const ServerCounts& counts) const override {
    std::vector<Figure> figures = SharingWork::figures(counts);
    figures.emplace_back("most_site_lead", counts.site_lead);
    figures.emplace_back("site_barriers", counts.site_barriers);
    return figures;
  }

 private:
  std::int64_t staleness_;
};

}  // namespace

SyncPart approximate() {
  return {{"approximate", "a site waits while it is too far ahead of the slowest one",
           with_work_settings({{"staleness", "8", "steps by which a site may be ahead of the slowest"}})},
          [](OptionReader& options) -> std::unique_ptr<const Sync> {
            for (const char* key : {"sites", "threshold"})
              if (options.has(key)) {
                options.ignore(key);
                options.problem(key, fmt::format("is the exchange's: set exchange.{} instead",
                                                 std::string_view(key) == "sites" ? "sites" : "site_threshold"));
              }
            const std::int64_t staleness = options.integer("staleness", 8, 1, 1'000'000);
            return std::make_unique<Approximate>(staleness, read_work(options));
          }};
}

}  // namespace echelon::syncs
