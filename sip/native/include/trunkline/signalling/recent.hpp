#pragma once

#include <cstddef>
#include <list>
#include <unordered_map>
#include <utility>

namespace trunkline::signalling {

/// A table of at most so many entries, in the order of their last use: a new one takes the place of that
/// which was not used for longest.
template <class Key, class Value, class Hash>
class Recent {
  public:
    using Entry = std::pair<const Key, Value>;

    explicit Recent(std::size_t most) : most_(most) {}

    /// The value of a key, or null; its place in the order stays.
    Value* find(const Key& key) {
        const auto found = index_.find(key);
        return found == index_.end() ? nullptr : &found->second->second;
    }

    /// The value of a key, newly made when there is none; it is now the last that was used.
    Value& use(const Key& key) {
        if (const auto found = index_.find(key); found != index_.end()) {
            order_.splice(order_.end(), order_, found->second);
            return found->second->second;
        }
        if (!order_.empty() && order_.size() >= most_) erase(order_.front().first);
        order_.emplace_back(std::piecewise_construct, std::forward_as_tuple(key), std::forward_as_tuple());
        index_.emplace(key, std::prev(order_.end()));
        return order_.back().second;
    }

    void erase(const Key& key) {
        const auto found = index_.find(key);
        if (found == index_.end()) return;
        const auto place = found->second;  // The key may lie in the entry itself.
        index_.erase(found);
        order_.erase(place);
    }

    /// The entry that was not used for longest; null when there is none.
    const Entry* oldest() const { return order_.empty() ? nullptr : &order_.front(); }

    std::size_t size() const { return order_.size(); }

  private:
    std::size_t most_;
    std::list<Entry> order_;
    std::unordered_map<Key, typename std::list<Entry>::iterator, Hash> index_;
};

}  // namespace trunkline::signalling
