-- Records sessions and devices of users at a node. KEYS: sessions and devices of each user.
-- ARGV: node, milliseconds for which sessions count, and devices, then sessions, limit of devices (-1: none), number of
-- devices, number of devices that are gone, and these devices of each user.
-- Answers for each user: nodes, sessions, devices, refused devices.
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local sessions_window, devices_window = tonumber(ARGV[2]), tonumber(ARGV[3])
local answer = {}
local i = 4
for user = 1, #KEYS / 2 do
  local sessions, devices = KEYS[2 * user - 1], KEYS[2 * user]
  local open, limit, count = tonumber(ARGV[i]), tonumber(ARGV[i + 1]), tonumber(ARGV[i + 2])
  local first, gone = i + 4, tonumber(ARGV[i + 3])
  if open > 0 then
    redis.call('HSET', sessions, ARGV[1], string.format('%.0f:%.0f', open, now + sessions_window))
  else
    redis.call('HDEL', sessions, ARGV[1])
  end
  local nodes, total = 0, 0
  local all = redis.call('HGETALL', sessions)
  for f = 1, #all, 2 do
    local at_node, till = string.match(all[f + 1], '^(%d+):(%d+)$')
    if till and tonumber(till) > now then
      nodes = nodes + 1
      total = total + tonumber(at_node)
    else
      redis.call('HDEL', sessions, all[f])
    end
  end
  redis.call('ZREMRANGEBYSCORE', devices, '-inf', string.format('%.0f', now - devices_window))
  for d = first + count, first + count + gone - 1 do
    redis.call('ZREM', devices, ARGV[d])
  end
  local known = redis.call('ZCARD', devices)
  local refused = {}
  for d = first, first + count - 1 do
    local is_known = redis.call('ZSCORE', devices, ARGV[d])
    if not is_known and limit >= 0 and known >= limit then
      refused[#refused + 1] = ARGV[d]
    else
      if not is_known then known = known + 1 end
      redis.call('ZADD', devices, string.format('%.0f', now), ARGV[d])
    end
  end
  -- The limit was lowered: the devices that came last are refused.
  local d = first + count - 1
  while limit >= 0 and known > limit and d >= first do
    if redis.call('ZREM', devices, ARGV[d]) == 1 then
      known = known - 1
      refused[#refused + 1] = ARGV[d]
    end
    d = d - 1
  end
  redis.call('EXPIRE', sessions, math.ceil(sessions_window / 1000))
  redis.call('EXPIRE', devices, math.ceil(devices_window / 1000))
  answer[#answer + 1] = {nodes, total, known, refused}
  i = first + count + gone
end
return answer
