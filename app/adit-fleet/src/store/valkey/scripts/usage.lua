-- Adds a batch of usage once. KEYS: seq, nodes, then the totals and the directions of each period.
-- ARGV: node, number of the batch, number of periods, seconds for which each is kept (0: always), then index of the
-- period, user, bytes from the client and bytes of both directions of each entry.
local last = tonumber(redis.call('HGET', KEYS[1], ARGV[1]) or '0')
local number = tonumber(ARGV[2])
local is_new = number > last
-- First: whatever fails below, a repetition must not count anything twice.
if is_new then
  redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
  last = number
end
local periods = tonumber(ARGV[3])
local answer = {is_new and 1 or 0, last, redis.call('HLEN', KEYS[2])}
for i = 4 + periods, #ARGV, 4 do
  local period = tonumber(ARGV[i])
  local totals, directions = KEYS[2 * period + 1], KEYS[2 * period + 2]
  local user, from_client = ARGV[i + 1], ARGV[i + 1] .. '.u'
  if is_new then
    answer[#answer + 1] = redis.call('HINCRBY', totals, user, ARGV[i + 3])
    answer[#answer + 1] = redis.call('HINCRBY', directions, from_client, ARGV[i + 2])
  else
    answer[#answer + 1] = redis.call('HGET', totals, user) or 0
    answer[#answer + 1] = redis.call('HGET', directions, from_client) or 0
  end
end
if is_new then
  for period = 1, periods do
    local kept = ARGV[3 + period]
    if kept ~= '0' then
      redis.call('EXPIRE', KEYS[2 * period + 1], kept)
      redis.call('EXPIRE', KEYS[2 * period + 2], kept)
    end
  end
end
return answer
