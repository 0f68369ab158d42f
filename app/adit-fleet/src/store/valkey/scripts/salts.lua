-- Records salts, and answers for each whether it is new. KEYS: buckets. ARGV: seconds for which a bucket is kept, then
-- index of the bucket and digest of each salt.
local answer = {}
for i = 2, #ARGV, 2 do
  answer[#answer + 1] = redis.call('SADD', KEYS[tonumber(ARGV[i])], ARGV[i + 1])
end
for _, key in ipairs(KEYS) do redis.call('EXPIRE', key, ARGV[1]) end
return answer
